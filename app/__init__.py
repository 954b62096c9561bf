"""What the user named (a program, an index, questions), looked up once: for commands, the server and notebooks."""
