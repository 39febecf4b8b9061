"""What is true of a kernel: values per lane, accesses, branches, barriers, launches."""
