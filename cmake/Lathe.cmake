# Helpers for the rooms: one library a folder, sources listed, LLVM through its shared libraries (one of ours has it in itself).

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

# What links TARGET links the shared libraries of MLIR and LLVM; a target with the property LATHE_LLVM_ARCHIVES takes from that
# library what it needs of them.
function(lathe_use_mlir target)
  lathe_mlir_flags(${target})
  set(archives "$<TARGET_PROPERTY:LATHE_LLVM_ARCHIVES>")
  target_link_libraries(${target} PUBLIC "$<IF:$<BOOL:${archives}>,${archives},MLIR;LLVM>")
  lathe_precompiled(${target} Mlir)
endfunction()

# lathe_llvm_archives(NAME COMPONENT ...): a library for LATHE_LLVM_ARCHIVES: the archives of MLIR, of LLVM's components and of
# what those need in turn. What links it must keep their symbols to itself (lathe_shared_exports), because its process may
# have the shared libraries too.
function(lathe_llvm_archives name)
  get_property(open GLOBAL PROPERTY MLIR_ALL_LIBS)
  list(FILTER open EXCLUDE REGEX "Test")
  list(TRANSFORM ARGN PREPEND LLVM)
  list(APPEND open ${ARGN})
  set(seen "")
  set(archives "")
  while(open)
    list(POP_FRONT open item)
    string(REGEX REPLACE "^\\$<LINK_ONLY:(.*)>$" "\\1" item "${item}")
    if(item IN_LIST seen OR NOT TARGET ${item})
      continue()
    endif()
    list(APPEND seen ${item})
    get_target_property(type ${item} TYPE)
    if(NOT type STREQUAL "STATIC_LIBRARY")
      continue() # MLIR's archives name the shared LLVM
    endif()
    list(APPEND archives $<TARGET_FILE:${item}>)
    get_target_property(more ${item} INTERFACE_LINK_LIBRARIES)
    if(more)
      list(APPEND open ${more})
    endif()
  endwhile()
  # installed with LLVM, by this name; the short one comes with zstd's headers, which nobody needs
  find_library(LATHE_ZSTD NAMES zstd libzstd.so.1 REQUIRED)
  list(JOIN archives "," archives)
  add_library(${name} INTERFACE)
  target_link_libraries(${name} INTERFACE "$<LINK_GROUP:RESCAN,${archives}>" ZLIB::ZLIB ${LATHE_ZSTD} Threads::Threads ${CMAKE_DL_LIBS} m)
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
