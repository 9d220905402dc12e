# Helpers for the rooms: one library a folder, sources listed, LLVM only through its shared libraries.

# the repository, also when the runtime is configured alone
get_filename_component(LATHE_ROOT ${CMAKE_CURRENT_LIST_DIR} DIRECTORY)
set(LATHE_WARNINGS -Wall -Wextra -Wno-unused-parameter)

function(lathe_common_flags target)
  target_include_directories(${target} PUBLIC ${LATHE_ROOT} ${CMAKE_BINARY_DIR})
  target_compile_options(${target} PRIVATE ${LATHE_WARNINGS})
  if(LATHE_WERROR)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
  if(LATHE_ASSERTIONS)
    target_compile_options(${target} PRIVATE -UNDEBUG)
  endif()
  if(LATHE_SANITIZE)
    target_compile_options(${target} PRIVATE -fsanitize=${LATHE_SANITIZE} -fno-omit-frame-pointer)
    target_link_options(${target} PRIVATE -fsanitize=${LATHE_SANITIZE})
  endif()
endfunction()

# lathe_precompiled(TARGET Core|Mlir): the headers of others come precompiled (cmake/precompiled). Only for targets that are
# compiled with the carriers' own flags.
function(lathe_precompiled target kind)
  if(TARGET LathePrecompiled${kind})
    target_precompile_headers(${target} REUSE_FROM LathePrecompiled${kind})
    get_target_property(type ${target} TYPE)
    if(type STREQUAL "EXECUTABLE")
      # code of programs would be compiled with -fPIE, for which clang takes no header of -fPIC
      set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
      target_compile_options(${target} PRIVATE -fPIC)
    endif()
  endif()
endfunction()

# lathe_library(NAME SOURCES a.cpp ... [LINK LatheBase ...] [DEPENDS generated-target ...])
# A library that sees neither MLIR nor LLVM.
function(lathe_library name)
  cmake_parse_arguments(A "MLIR" "" "SOURCES;LINK;DEPENDS" ${ARGN})
  add_library(${name} STATIC ${A_SOURCES})
  lathe_common_flags(${name})
  target_link_libraries(${name} PUBLIC ${A_LINK})
  if(A_DEPENDS)
    add_dependencies(${name} ${A_DEPENDS})
  endif()
  if(A_MLIR)
    lathe_use_mlir(${name})
  else()
    lathe_precompiled(${name} Core)
  endif()
endfunction()

# lathe_shared_exports(TARGET exports.map): the shared library has the symbols that the version script lists and no others. Its
# own libraries lie in its folder.
function(lathe_shared_exports target script)
  set(path ${CMAKE_CURRENT_SOURCE_DIR}/${script})
  target_link_options(${target} PRIVATE -Wl,--version-script=${path} -Wl,-Bsymbolic-functions -Wl,--gc-sections)
  set_target_properties(${target} PROPERTIES LINK_DEPENDS ${path} BUILD_RPATH_USE_ORIGIN ON INSTALL_RPATH "$ORIGIN")
endfunction()

function(lathe_mlir_flags target)
  target_include_directories(${target} SYSTEM PUBLIC ${LLVM_INCLUDE_DIRS} ${MLIR_INCLUDE_DIRS})
  separate_arguments(defs NATIVE_COMMAND "${LLVM_DEFINITIONS}")
  target_compile_options(${target} PUBLIC ${defs})
  target_compile_options(${target} PRIVATE -fno-exceptions)
endfunction()

function(lathe_use_mlir target)
  lathe_mlir_flags(${target})
  target_link_libraries(${target} PUBLIC MLIR LLVM)
  lathe_precompiled(${target} Mlir)
endfunction()

# The same for a library on MLIR: links libMLIR.so and libLLVM.so and nothing else of LLVM.
function(lathe_mlir_library name)
  lathe_library(${name} MLIR ${ARGN})
endfunction()

# lathe_tablegen(TARGET FILE.td OUT1 -gen-x OUT2 -gen-y ...): generated headers land beside the source's place in the build tree.
function(lathe_tablegen target td)
  set(LLVM_TARGET_DEFINITIONS ${td})
  set(args ${ARGN})
  list(LENGTH args n)
  math(EXPR last "${n} - 1")
  # MLIR's tablegen macro reads the include directories of the folder
  include_directories(SYSTEM ${MLIR_INCLUDE_DIRS})
  include_directories(${LATHE_ROOT})
  foreach(i RANGE 0 ${last} 2)
    math(EXPR j "${i} + 1")
    list(GET args ${i} out)
    list(GET args ${j} gen)
    string(REPLACE "|" ";" gen "${gen}")
    mlir_tablegen(${out} ${gen})
  endforeach()
  add_public_tablegen_target(${target})
endfunction()

# lathe_gtest(NAME [MLIR] SOURCES ... LINK ...): a GoogleTest program in bin/tests/, run by lit with everything else. MLIR: its
# own files include MLIR. NAME ends in Tests: lit finds the programs by that.
function(lathe_gtest name)
  cmake_parse_arguments(A "MLIR" "" "SOURCES;LINK" ${ARGN})
  add_executable(${name} ${A_SOURCES})
  lathe_common_flags(${name})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin/tests)
  target_compile_definitions(${name} PRIVATE LATHE_SOURCE_DIR="${LATHE_ROOT}")
  target_link_libraries(${name} PRIVATE ${A_LINK} GTest::gtest GTest::gtest_main Threads::Threads)
  set_property(GLOBAL APPEND PROPERTY LATHE_TEST_TARGETS ${name})
  if(A_MLIR)
    lathe_use_mlir(${name})
  else()
    lathe_precompiled(${name} Core)
  endif()
endfunction()
