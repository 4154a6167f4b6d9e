/* The program's version: what `frazil --version` prints and what a User-Agent says. */
#ifndef FZ_VERSION_H
#define FZ_VERSION_H
#define FRAZIL_VERSION "0.1.0"
#endif
