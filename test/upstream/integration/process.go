// Package apiprocess starts kube-apiserver as a process for tests that normally run it in their own process.
package apiprocess

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io/ioutil"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

const Token = "privileged-loopback-token"

type Authority struct {
	Cert *x509.Certificate
	Key  *ecdsa.PrivateKey
	PEM  []byte
}

func serial() *big.Int {
	n, _ := rand.Int(rand.Reader, big.NewInt(1<<62))
	return n
}

func NewAuthority(name string) (*Authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: serial(), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Minute), NotAfter: time.Now().Add(24 * time.Hour),
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, err
	}
	cert, err := x509.ParseCertificate(der)
	return &Authority{cert, key, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})}, err
}

// Issue a certificate for a client or, if a host is given, for a server.
func (a *Authority) Issue(subject pkix.Name, hosts ...string) (cert, keyPEM []byte, err error) {
	var key crypto.Signer
	if len(hosts) > 0 {
		// Same as upstream's, because some suites check it.
		key, err = rsa.GenerateKey(rand.Reader, 2048)
	} else {
		key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	}
	if err != nil {
		return nil, nil, err
	}
	usage := x509.ExtKeyUsageClientAuth
	template := &x509.Certificate{SerialNumber: serial(), Subject: subject, NotBefore: time.Now().Add(-time.Minute), NotAfter: time.Now().Add(24 * time.Hour), KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment}
	for _, host := range hosts {
		usage = x509.ExtKeyUsageServerAuth
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	template.ExtKeyUsage = []x509.ExtKeyUsage{usage}
	der, err := x509.CreateCertificate(rand.Reader, template, a.Cert, key.Public(), a.Key)
	if err != nil {
		return nil, nil, err
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}), nil
}

var (
	stores     = map[string]string{}
	storesLock sync.Mutex
)

// storeFor starts an etcd for each prefix, unless the tested server supports prefixes.
func storeFor(url, prefix string) (string, error) {
	storesLock.Lock()
	defer storesLock.Unlock()
	if Prefixes() {
		return url, nil
	}
	for _, started := range stores {
		if started == url {
			return url, nil
		}
	}
	key := url + prefix
	if known, ok := stores[key]; ok {
		return known, nil
	}
	dir, err := ioutil.TempDir("", "etcd-data")
	if err != nil {
		return "", err
	}
	port, peer := FreePort(), FreePort()
	client := fmt.Sprintf("http://127.0.0.1:%d", port)
	peerURL := fmt.Sprintf("http://127.0.0.1:%d", peer)
	cmd := exec.Command("etcd", "--data-dir", dir, "--listen-client-urls", client, "--advertise-client-urls", client, "--listen-peer-urls", peerURL,
		"--initial-advertise-peer-urls", peerURL, "--initial-cluster", "default="+peerURL)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	log, _ := os.Create(filepath.Join(dir, "log"))
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		return "", err
	}
	for i := 0; i < 600; i++ {
		response, err := http.Get(client + "/health")
		if err == nil {
			response.Body.Close()
			if response.StatusCode == 200 {
				stores[key] = client
				return client, nil
			}
		}
		time.Sleep(50 * time.Millisecond)
	}
	text, _ := ioutil.ReadFile(filepath.Join(dir, "log"))
	return "", fmt.Errorf("etcd does not start: %s", text)
}

// Prefixes reports whether the program is upstream's own.
func Prefixes() bool { return os.Getenv("APISERVER_PREFIXES") != "" }

func FreePort() int {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

type Options struct {
	Logf       func(string, ...interface{})
	Dir        string
	Flags      []string
	EtcdURL    string
	EtcdPrefix string
	// Do not wait.
	NoWait bool
}

type Process struct {
	URL  string
	Port int
	CA   []byte
	// Address of the store, and prefix of the keys.
	StoreURL, StorePrefix string
	CertFile              string
	ClientCA, ProxyCA     *Authority
	ClientCAFile          string
	ProxyCAFile           string
	cmd                   *exec.Cmd
	done                  chan struct{}
	logFile               string
	logf                  func(string, ...interface{})
}

func has(flags []string, name string) bool {
	for _, each := range flags {
		if each == "--"+name || strings.HasPrefix(each, "--"+name+"=") || each == "-"+name {
			return true
		}
	}
	return false
}

func value(flags []string, name string) string {
	found := ""
	for i, each := range flags {
		if strings.HasPrefix(each, "--"+name+"=") {
			found = strings.SplitN(each, "=", 2)[1]
		} else if each == "--"+name && i+1 < len(flags) {
			found = flags[i+1]
		}
	}
	return found
}

func without(flags []string, name string) []string {
	var rest []string
	for i := 0; i < len(flags); i++ {
		if flags[i] == "--"+name {
			i++
			continue
		}
		if !strings.HasPrefix(flags[i], "--"+name+"=") {
			rest = append(rest, flags[i])
		}
	}
	return rest
}

func Start(o Options) (*Process, error) {
	p := &Process{done: make(chan struct{}), logf: o.Logf}
	write := func(name string, data []byte) string {
		path := filepath.Join(o.Dir, name)
		if err := ioutil.WriteFile(path, data, 0600); err != nil {
			panic(err)
		}
		return path
	}
	var err error
	var flags []string
	for _, each := range o.Flags {
		if each != "" {
			flags = append(flags, each)
		}
	}
	if !Prefixes() {
		flags = without(flags, "watch-cache")
	}
	own := func(name, value string) {
		if !has(flags, name) {
			flags = append(flags, "--"+name+"="+value)
		}
	}
	if p.ClientCA, err = NewAuthority("client-ca"); err != nil {
		return nil, err
	}
	if p.ProxyCA, err = NewAuthority("front-proxy-ca"); err != nil {
		return nil, err
	}
	if !has(flags, "client-ca-file") {
		p.ClientCAFile = write("client-ca.crt", p.ClientCA.PEM)
	} else {
		p.ClientCAFile = value(flags, "client-ca-file")
	}
	own("client-ca-file", p.ClientCAFile)
	if !has(flags, "requestheader-client-ca-file") {
		p.ProxyCAFile = write("proxy-ca.crt", p.ProxyCA.PEM)
	} else {
		p.ProxyCAFile = value(flags, "requestheader-client-ca-file")
	}
	own("requestheader-client-ca-file", p.ProxyCAFile)
	own("requestheader-username-headers", "X-Remote-User")
	own("requestheader-group-headers", "X-Remote-Group")
	own("requestheader-extra-headers-prefix", "X-Remote-Extra-")

	tokens := fmt.Sprintf("%s,system:apiserver,loopback-uid,system:masters\n", Token)
	if file := value(flags, "token-auth-file"); file != "" {
		more, err := ioutil.ReadFile(file)
		if err != nil {
			return nil, err
		}
		tokens += string(more)
		flags = without(flags, "token-auth-file")
	}
	own("token-auth-file", write("tokens.csv", []byte(tokens)))

	if !has(flags, "service-account-signing-key-file") {
		signer, err := NewAuthority("sa")
		if err != nil {
			return nil, err
		}
		der, _ := x509.MarshalECPrivateKey(signer.Key)
		own("service-account-signing-key-file", write("sa.key", pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der})))
		own("service-account-key-file", filepath.Join(o.Dir, "sa.key"))
	}
	own("service-account-issuer", "https://foo.bar.example.com")
	own("service-cluster-ip-range", "10.0.0.0/16")
	own("runtime-config", "api/all=true")
	own("authorization-mode", "AlwaysAllow")
	store, err := storeFor(o.EtcdURL, o.EtcdPrefix)
	if err != nil {
		return nil, err
	}
	p.StoreURL, p.StorePrefix = store, o.EtcdPrefix
	if !Prefixes() {
		p.StorePrefix = "registry"
	}
	flags = without(without(flags, "etcd-servers"), "etcd-prefix")
	flags = append(flags, "--etcd-servers="+store)
	if Prefixes() {
		flags = append(flags, "--etcd-prefix="+o.EtcdPrefix, "--insecure-port=0")
	}
	if file := value(flags, "secure-port"); file == "" || file == "0" {
		flags = without(flags, "secure-port")
		p.Port = FreePort()
		flags = append(flags, fmt.Sprintf("--secure-port=%d", p.Port))
	}
	bind := value(flags, "bind-address")
	if bind == "" || bind == "0.0.0.0" || bind == "<nil>" {
		bind = "127.0.0.1"
	}
	own("bind-address", bind)
	if has(flags, "tls-cert-file") {
		p.CertFile = value(flags, "tls-cert-file")
	} else {
		serving, err := NewAuthority("serving-ca")
		if err != nil {
			return nil, err
		}
		cert, key, err := serving.Issue(pkix.Name{CommonName: "kube-apiserver"}, bind, "127.0.0.1", "localhost", "kubernetes", "kubernetes.default.svc", "10.0.0.1")
		if err != nil {
			return nil, err
		}
		p.CertFile = write("apiserver.crt", append(cert, serving.PEM...))
		own("tls-cert-file", p.CertFile)
		own("tls-private-key-file", write("apiserver.key", key))
	}
	p.CA, _ = ioutil.ReadFile(p.CertFile)
	p.URL = fmt.Sprintf("https://%s:%d", bind, p.Port)

	p.logFile = filepath.Join(o.Dir, "apiserver.log")
	if logs := os.Getenv("APISERVER_LOGS"); logs != "" {
		p.logFile = filepath.Join(logs, fmt.Sprintf("apiserver-%d-%d.log", os.Getpid(), p.Port))
	}
	log, err := os.Create(p.logFile)
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(log, "%v\n", flags)
	p.cmd = exec.Command("kube-apiserver", flags...)
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	p.cmd.Stdout, p.cmd.Stderr = log, log
	o.Logf("kube-apiserver %v", flags)
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() { p.cmd.Wait(); log.Close(); close(p.done) }()
	client := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}}
	get := func(path string) bool {
		request, _ := http.NewRequest("GET", p.URL+path, nil)
		request.Header.Set("Authorization", "Bearer "+Token)
		response, err := client.Do(request)
		if err != nil {
			return false
		}
		ioutil.ReadAll(response.Body)
		response.Body.Close()
		return response.StatusCode == 200
	}
	deadline := time.Now().Add(90 * time.Second)
	for !(get("/healthz") && get("/api/v1/namespaces/default") && get("/api/v1/namespaces/kube-system")) {
		select {
		case <-p.done:
			text, _ := ioutil.ReadFile(p.logFile)
			return nil, fmt.Errorf("kube-apiserver ended: %s", text)
		default:
		}
		if time.Now().After(deadline) {
			p.Stop()
			text, _ := ioutil.ReadFile(p.logFile)
			return nil, fmt.Errorf("kube-apiserver does not become healthy: %s", text)
		}
		time.Sleep(100 * time.Millisecond)
	}
	return p, nil
}

// Signal requests the end of the process without waiting for it.
func (p *Process) Signal() { p.cmd.Process.Signal(syscall.SIGTERM) }

func (p *Process) Stop() {
	p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.done:
	case <-time.After(15 * time.Second):
		p.logf("kube-apiserver does not end")
		p.cmd.Process.Kill()
		<-p.done
	}
}

// ProxyClient is the client of the authenticating proxy, which may set user headers.
func (p *Process) ProxyClient() (tls.Certificate, error) {
	cert, key, err := p.ProxyCA.Issue(pkix.Name{CommonName: "front-proxy"})
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.X509KeyPair(cert, key)
}
