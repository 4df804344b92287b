// Package programs lets handler programs, see package sdk/program, do the work of an agent's tasks.
//
// Each program is asked once for the types that it handles. It is then kept running; when it ends it is started again by the
// next task, after a pause that grows while it keeps failing. What it worked on when it ended has failed, and nothing else.
package programs
