package executor_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"testing"

	"github.com/intendant/intendant/python"
)

// runScript runs a script of testdata/library with our packages before all others.
func runScript(t *testing.T, name string, args ...string) {
	t.Helper()
	interpreter, err := python.Find("")
	if err != nil {
		t.Fatal(err)
	}
	runtime, err := python.Unpack(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	const start = "import runpy, sys; sys.path.insert(0, sys.argv.pop(1)); script = sys.argv.pop(1); sys.argv[0] = script; runpy.run_path(script, run_name='__main__')"
	out, err := exec.CommandContext(t.Context(), interpreter, append([]string{"-I", "-c", start, runtime, "testdata/library/" + name}, args...)...).CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// The parts of the package inmanta that need no agent.
func TestLibrary(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"dict_path.py", "util.py"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			runScript(t, name)
		})
	}
	t.Run("client.py", func(t *testing.T) {
		t.Parallel()
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasPrefix(r.URL.Path, "/api/v1/file/") {
				w.WriteHeader(http.StatusNotFound)
				_, _ = w.Write([]byte(`{"message": "not here"}`))
				return
			}
			var body any
			_ = json.NewDecoder(r.Body).Decode(&body) // there may be none
			_ = json.NewEncoder(w).Encode(map[string]any{"seen": map[string]any{
				"method": r.Method, "uri": r.URL.RequestURI(), "tid": r.Header.Get("X-Inmanta-Tid"), "auth": r.Header.Get("Authorization"), "body": body,
			}})
		}))
		t.Cleanup(server.Close)
		runScript(t, "client.py", server.URL[strings.LastIndex(server.URL, ":")+1:])
	})
}
