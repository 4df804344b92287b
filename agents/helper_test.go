package agents_test

// runHelper runs the process that a test started from its own binary, and tells whether this is one.
func runHelper() bool { return false }
