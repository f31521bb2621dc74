// Package child runs a command in a process group of its own, so that the command ends with all that it
// has started, whatever happens to this process.
//
// If this process is killed, even with SIGKILL, two things end the command: on Linux the kernel kills the
// process that was started (see prctl(2), PR_SET_PDEATHSIG), and everywhere a guard kills its group. The
// guard is this program again, see [Guard]; it reads a pipe, which ends with this process.
//
// If this process is PID 1, it also collects the dead whose parents have ended.
//
// If there is a terminal, the command has it: it is in the foreground, Ctrl-C is its own, and Ctrl-Z stops
// it together with this process, as shells expect. In a pipeline, whose other parts may use the terminal,
// the command gets it when it first asks for it.
package child
