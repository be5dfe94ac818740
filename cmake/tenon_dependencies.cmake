# tenon_headers: the header-only dependencies, from the system's packages or from the folder TENON_HEADERS.
add_library(tenon_headers INTERFACE)
if(TENON_HEADERS)
  target_include_directories(tenon_headers SYSTEM INTERFACE ${TENON_HEADERS})
endif()

# fmt comes as a library on most systems, which compiles faster; its headers alone do too.
if(NOT TENON_HEADERS)
  find_package(fmt QUIET)
endif()
if(TARGET fmt::fmt)
  target_link_libraries(tenon_headers INTERFACE fmt::fmt)
else()
  target_compile_definitions(tenon_headers INTERFACE FMT_HEADER_ONLY=1)
endif()

# The libraries of ImageDecoder, each used where it is installed. A line is the format, a header, the library and a function
# that it must have. tenon_use_image_libraries(SOURCES) leaves out the source files of formats without one, and gives those
# of the others what they need; TENON_IMAGE_LIBRARIES is to be linked.
include(CheckLibraryExists)
set(TENON_IMAGE_LIBRARIES "")
set(tenon_image_includes "")
set(tenon_image_definitions "")
set(tenon_missing_formats "")
foreach(line
    "jpeg     jpeglib.h     jpeg     jpeg_mem_src"
    "jpeg2000 openjpeg.h    openjp2  opj_decoder_set_strict_mode"
    "png      png.h         png      png_set_scale_16"
    "tiff     tiffio.h      tiff     TIFFClientOpenExt"
    "webp     webp/decode.h webp     WebPDecodeRGBInto")
  string(REGEX REPLACE " +" ";" line "${line}")
  list(GET line 0 format)
  list(GET line 1 header)
  list(GET line 2 library)
  list(GET line 3 function)
  string(TOUPPER ${format} name)
  if(NOT TENON_HEADERS)
    find_path(TENON_${name}_INCLUDE ${header} PATH_SUFFIXES openjpeg-2.5 openjpeg-2.6)
    find_library(TENON_${name}_LIBRARY ${library})
    if(TENON_${name}_INCLUDE AND TENON_${name}_LIBRARY)
      check_library_exists(${TENON_${name}_LIBRARY} ${function} "" TENON_${name}_USABLE)
    endif()
  endif()
  if(TENON_${name}_USABLE AND NOT TENON_HEADERS)
    list(APPEND TENON_IMAGE_LIBRARIES ${TENON_${name}_LIBRARY})
    list(APPEND tenon_image_includes ${TENON_${name}_INCLUDE})
    list(APPEND tenon_image_definitions TENON_WITH_${name})
  else()
    list(APPEND tenon_missing_formats ${format})
  endif()
endforeach()
list(REMOVE_ITEM tenon_image_includes ${CMAKE_CXX_IMPLICIT_INCLUDE_DIRECTORIES})

function(tenon_use_image_libraries sources)
  foreach(format IN LISTS tenon_missing_formats)
    list(FILTER ${sources} EXCLUDE REGEX "/image_decoder/cpu_${format}\\.cc$")
  endforeach()
  set(decoders ${${sources}})
  list(FILTER decoders INCLUDE REGEX "/image_decoder/cpu_")
  set_source_files_properties(${decoders} PROPERTIES COMPILE_DEFINITIONS "${tenon_image_definitions}")
  foreach(folder IN LISTS tenon_image_includes)
    set_property(SOURCE ${decoders} APPEND PROPERTY COMPILE_OPTIONS "-isystem${folder}")
  endforeach()
  set(${sources} ${${sources}} PARENT_SCOPE)
endfunction()
