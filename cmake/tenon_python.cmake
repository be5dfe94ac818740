# The Python package: the extension module, its stub, and what is installed with them. `pip install .` builds it
# (pyproject.toml); nanobind comes from the Python that builds it.
# Where that is gone, the rest of the build goes on without.
find_package(Python 3.10 COMPONENTS Interpreter Development.Module OPTIONAL_COMPONENTS Development.SABIModule)
if(Python_FOUND)
  execute_process(COMMAND ${Python_EXECUTABLE} -m nanobind --cmake_dir OUTPUT_VARIABLE nanobind_DIR
                  OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  find_package(nanobind CONFIG QUIET PATHS ${nanobind_DIR} NO_DEFAULT_PATH)
endif()
if(NOT nanobind_FOUND)
  message(WARNING "The Python package is left out: no Python with its headers and nanobind was found. `make python` gets them.")
  return()
endif()

set(tenon_python_folder ${PROJECT_BINARY_DIR}/python/tenon)
tenon_collect_sources(python/src python_sources)
# The stable ABI from Python 3.12 on, as nanobind has it; one file then serves all later versions.
# NOMINSIZE: small models take less time than the call around them.
nanobind_add_module(_tenon STABLE_ABI FREE_THREADED NB_STATIC NB_SUPPRESS_WARNINGS NOMINSIZE ${python_sources})
target_link_libraries(_tenon PRIVATE tenon)
# Our warnings are not for nanobind's own files.
get_property(targets DIRECTORY PROPERTY BUILDSYSTEM_TARGETS)
list(FILTER targets INCLUDE REGEX "^nanobind-")
foreach(target IN LISTS targets)
  target_compile_options(${target} PRIVATE -w)
endforeach()
target_link_options(_tenon PRIVATE $<$<PLATFORM_ID:Linux>:-Wl,--exclude-libs,ALL>)
set_target_properties(_tenon PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${tenon_python_folder})
nanobind_add_stub(_tenon_stub MODULE _tenon OUTPUT ${tenon_python_folder}/_tenon.pyi PYTHON_PATH ${tenon_python_folder}
                  DEPENDS _tenon)

# The package as pip installs it: CMAKE_INSTALL_PREFIX is the folder of packages.
install(TARGETS _tenon LIBRARY DESTINATION tenon COMPONENT python)
install(FILES ${tenon_python_folder}/_tenon.pyi DESTINATION tenon COMPONENT python)
install(DIRECTORY python/tenon DESTINATION . COMPONENT python PATTERN __pycache__ EXCLUDE)
if(SKBUILD)
  install(TARGETS tenon_cli RUNTIME DESTINATION ${SKBUILD_SCRIPTS_DIR} COMPONENT python)
endif()
