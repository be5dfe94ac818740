# cmake -DSOURCES=FOLDER -DOUTPUT=FILE -P source_hash.cmake
# Writes a source file that says which sources a build was made from (src/base/source_hash.h). Tests do not count.
file(GLOB_RECURSE files RELATIVE ${SOURCES} ${SOURCES}/src/*.cc ${SOURCES}/src/*.h ${SOURCES}/include/*.h)
list(FILTER files EXCLUDE REGEX "(/|_)(test|bench)\\.cc$")
list(SORT files)
set(all "")
foreach(file IN LISTS files)
  file(SHA256 ${SOURCES}/${file} hash)
  string(APPEND all "${file} ${hash}\n")
endforeach()
string(SHA256 hash "${all}")
string(SUBSTRING ${hash} 0 12 hash)
file(WRITE ${OUTPUT} "#include \"base/source_hash.h\"\n\nstd::string_view tenon::source_hash() { return \"${hash}\"; }\n")
