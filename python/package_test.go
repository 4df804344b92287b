package python_test

import (
	"os"
	"os/exec"
	"testing"

	"github.com/intendant/intendant/python"
)

// The tests of the packages that need no process of ours.
func TestPackages(t *testing.T) {
	t.Parallel()
	interpreter, err := python.Find(os.Getenv("INTENDANT_TEST_PYTHON"))
	if err != nil {
		t.Skip(err)
	}
	out, err := exec.CommandContext(t.Context(), interpreter, "-B", "-m", "unittest", "discover", "-s", "tests", "-t", ".").CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
