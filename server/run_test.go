package server_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/intendant/intendant/api"
	"github.com/intendant/intendant/server"
	"github.com/intendant/intendant/store/storetest"
)

// run starts a server and returns its address and how to stop it.
func run(t *testing.T, c server.Config) (address string, stop func() error) {
	t.Helper()
	listening := make(chan net.Addr, 1)
	c.Addresses = []string{"127.0.0.1:0"}
	c.OnListen = func(a net.Addr) { listening <- a }
	s, err := server.New(c)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	select {
	case a := <-listening:
		return a.String(), func() error { cancel(); return <-ended }
	case err := <-ended:
		t.Fatalf("Run = %v", err)
		return "", nil
	}
}

func TestRequestsFinishDuringTheStop(t *testing.T) {
	t.Parallel()
	begun, release := make(chan struct{}), make(chan struct{})
	address, stop := run(t, server.Config{
		Store: storetest.New(t), ShutdownTimeout: time.Minute,
		Webhooks: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			close(begun)
			<-release
			_, _ = io.WriteString(w, "done")
		}),
	})
	answered := make(chan string, 1)
	go func() {
		resp, err := http.Post("http://"+address+"/hooks/demo", "application/json", strings.NewReader("{}"))
		if err != nil {
			answered <- err.Error()
			return
		}
		defer resp.Body.Close()
		text, _ := io.ReadAll(resp.Body)
		answered <- string(text)
	}()
	<-begun
	stopped := make(chan error, 1)
	go func() { stopped <- stop() }()
	close(release)
	if got := <-answered; got != "done" {
		t.Errorf("the request = %q, want that it finishes", got)
	}
	if err := <-stopped; err != nil {
		t.Errorf("Run = %v", err)
	}
}

func TestRequestsThatDoNotFinishAreCutOff(t *testing.T) {
	t.Parallel()
	begun := make(chan struct{})
	address, stop := run(t, server.Config{
		Store: storetest.New(t), ShutdownTimeout: 50 * time.Millisecond,
		Webhooks: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			close(begun)
			<-r.Context().Done()
		}),
	})
	answered := make(chan error, 1)
	go func() {
		resp, err := http.Post("http://"+address+"/hooks/demo", "application/json", strings.NewReader("{}"))
		if err == nil {
			_ = resp.Body.Close()
		}
		answered <- err
	}()
	<-begun
	if err := stop(); err != nil {
		t.Errorf("Run = %v, want a clean stop", err)
	}
	<-answered
}

// certificate writes a certificate of its own for 127.0.0.1 and returns the files and who trusts it.
func certificate(t *testing.T) (certFile, keyFile string, trust *tls.Config) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	certFile, keyFile = filepath.Join(t.TempDir(), "cert.pem"), filepath.Join(t.TempDir(), "key.pem")
	for file, content := range map[string][]byte{certFile: certificate, keyFile: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})} {
		if err := os.WriteFile(file, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(certificate)
	return certFile, keyFile, &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
}

func TestTLS(t *testing.T) {
	t.Parallel()
	certFile, keyFile, trust := certificate(t)
	address, stop := run(t, server.Config{Store: storetest.New(t), TLSCertFile: certFile, TLSKeyFile: keyFile, Authenticator: server.BearerTokens{"ops": "correct horse"}})
	c, err := api.NewClient(api.ClientConfig{BaseURL: "https://" + address, TLS: trust, Token: "correct horse"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Projects(t.Context()); err != nil {
		t.Errorf("Projects = %v", err)
	}
	stranger, err := api.NewClient(api.ClientConfig{BaseURL: "https://" + address, Token: "correct horse", MaxRetries: -1})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stranger.Projects(t.Context()); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("Projects of who does not trust the certificate = %v", err)
	}
	if err := stop(); err != nil {
		t.Errorf("Run = %v", err)
	}
	if _, err := server.New(server.Config{Store: storetest.New(t), TLSCertFile: certFile, TLSKeyFile: certFile}); err != nil {
		t.Errorf("New = %v: it does no I/O", err)
	}
}

func TestBodiesThatNeverComeEndTheRequest(t *testing.T) {
	t.Parallel()
	address, stop := run(t, server.Config{Store: storetest.New(t), RequestTimeout: 100 * time.Millisecond})
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "PUT /api/v2/project HTTP/1.1\r\nHost: localhost\r\nContent-Length: 20\r\n\r\n{"); err != nil {
		t.Fatal(err)
	}
	if err := conn.SetReadDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(conn)
	if err != nil {
		t.Fatalf("reading the answer: %v", err)
	}
	if !strings.HasPrefix(string(answer), "HTTP/1.1 400") && !strings.HasPrefix(string(answer), "HTTP/1.1 408") {
		t.Errorf("the answer = %q, want a refusal", answer)
	}
	if err := stop(); err != nil {
		t.Errorf("Run = %v", err)
	}
}

func TestConnectionsOutliveDeadlines(t *testing.T) {
	t.Parallel()
	address, stop := run(t, server.Config{Store: storetest.New(t), RequestTimeout: time.Second, Heartbeat: 60 * time.Millisecond})
	client := &http.Client{Transport: &http.Transport{MaxConnsPerHost: 1}}
	read := func(path string) *http.Response {
		t.Helper()
		resp, err := client.Get("http://" + address + path)
		if err != nil {
			t.Fatal(err)
		}
		return resp
	}
	resp := read("/api/v2/project")
	_, _ = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
	// The stream is on the same connection and lives longer than the deadline that the request before has set.
	resp = read("/api/v3/events")
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("the stream's status is %d", resp.StatusCode)
	}
	buffer, beats := make([]byte, 64), 0
	for beats < 20 {
		n, err := resp.Body.Read(buffer)
		if err != nil {
			t.Fatalf("the stream ended after %d beats: %v", beats, err)
		}
		beats += strings.Count(string(buffer[:n]), ": \n\n")
	}
	if err := stop(); err != nil {
		t.Errorf("Run = %v", err)
	}
}
