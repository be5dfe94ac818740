# cmake -DINPUT=FILE -DFUNCTION=NAME -DHEADER=FILE -DOUTPUT=FILE -P embed_text.cmake
# Writes a source file with a function that returns a file's text; HEADER declares it.
file(READ ${INPUT} text)
file(WRITE ${OUTPUT} "#include \"${HEADER}\"\n\nstd::string_view ${FUNCTION}() {\n  return R\"EMBEDDED(${text})EMBEDDED\";\n}\n")
