message(FATAL_ERROR "a file of the project around bary was taken for bary's own")
