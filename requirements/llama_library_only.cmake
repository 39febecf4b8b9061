# Read by CMake right after the project llama.cpp is declared (CMAKE_PROJECT_llama.cpp_INCLUDE). llama-cpp-python switches
# llama.cpp's helper library for its command-line tools on, and it is more than half of the compile time; the Python
# package neither installs nor loads it.
set(LLAMA_BUILD_COMMON OFF CACHE BOOL "llama: build common utils library" FORCE)
