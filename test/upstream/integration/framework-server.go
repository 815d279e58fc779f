// StartTestServer converts the options that a test changed to flags.
package framework

import (
	"crypto/x509/pkix"
	"io/ioutil"
	"net"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/spf13/pflag"

	client "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/kubernetes/cmd/kube-apiserver/app/options"
	"k8s.io/kubernetes/pkg/controlplane"
	"k8s.io/kubernetes/test/utils/apiprocess"
)

func StartTestServer(t *testing.T, stopCh <-chan struct{}, setup TestServerSetup) (client.Interface, *rest.Config) {
	certDir, _ := ioutil.TempDir("", "test-integration-server")
	opts := options.NewServerRunOptions()
	fs := pflag.NewFlagSet("test", pflag.PanicOnError)
	for _, f := range opts.Flags().FlagSets {
		fs.AddFlagSet(f)
	}
	show := func(f *pflag.Flag) string {
		if list, ok := f.Value.(pflag.SliceValue); ok {
			return strings.Join(list.GetSlice(), ",")
		}
		if text := f.Value.String(); strings.HasPrefix(text, "[") {
			return strings.Trim(text, "[]")
		} else {
			return text
		}
	}
	before := map[string]string{}
	fs.VisitAll(func(f *pflag.Flag) { before[f.Name] = show(f) })
	clientCA, err := apiprocess.NewAuthority("client-ca")
	if err != nil {
		t.Fatal(err)
	}
	proxyCA, err := apiprocess.NewAuthority("front-proxy-ca")
	if err != nil {
		t.Fatal(err)
	}
	serving, err := apiprocess.NewAuthority("serving-ca")
	if err != nil {
		t.Fatal(err)
	}
	cert, key, err := serving.Issue(pkix.Name{CommonName: "kube-apiserver"}, "127.0.0.1", "localhost", "kubernetes.default.svc")
	if err != nil {
		t.Fatal(err)
	}
	write := func(name string, data []byte) string {
		path := filepath.Join(certDir, name)
		if err := ioutil.WriteFile(path, data, 0600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	opts.SecureServing.ServerCert.CertDirectory = certDir
	opts.SecureServing.BindAddress = net.ParseIP("127.0.0.1")
	opts.ServiceClusterIPRanges = "10.0.0.0/24"
	opts.Authentication.RequestHeader.UsernameHeaders = []string{"X-Remote-User"}
	opts.Authentication.RequestHeader.GroupHeaders = []string{"X-Remote-Group"}
	opts.Authentication.RequestHeader.ExtraHeaderPrefixes = []string{"X-Remote-Extra-"}
	opts.Authentication.RequestHeader.AllowedNames = []string{"kube-aggregator"}
	opts.Authentication.RequestHeader.ClientCAFile = write("proxy-ca.crt", proxyCA.PEM)
	opts.Authentication.ClientCert.ClientCA = write("client-ca.crt", clientCA.PEM)
	opts.SecureServing.ServerCert.CertKey.CertFile = write("apiserver.crt", append(cert, serving.PEM...))
	opts.SecureServing.ServerCert.CertKey.KeyFile = write("apiserver.key", key)
	opts.Authorization.Modes = []string{"Node", "RBAC"}
	if setup.ModifyServerRunOptions != nil {
		setup.ModifyServerRunOptions(opts)
	}
	if setup.ModifyServerConfig != nil {
		config := NewMasterConfig()
		config.GenericConfig.Authorization.Authorizer = nil
		config.GenericConfig.AuditBackend = nil
		setup.ModifyServerConfig(config)
		if config.GenericConfig.Authorization.Authorizer != nil {
			opts.Authorization.Modes = []string{"AlwaysAllow"}
		}
		if config.GenericConfig.AuditBackend != nil {
			t.Fatal("REACHES-IN: audit backend")
		}
	}
	if data := opts.KubeletConfig.CAData; len(data) > 0 {
		opts.KubeletConfig.CAFile = write("kubelet-ca.crt", []byte(strings.ReplaceAll(string(data), "  ", "")))
	}
	var flags []string
	fs.VisitAll(func(f *pflag.Flag) {
		if now := show(f); now != before[f.Name] && f.Name != "tls-sni-cert-key" && f.Name != "secure-port" && f.Deprecated == "" && f.Name != "service-account-api-audiences" {
			flags = append(flags, "--"+f.Name+"="+now)
		}
	})
	for _, each := range opts.SecureServing.SNICertKeys {
		names := ""
		if len(each.Names) > 0 {
			names = ":" + strings.Join(each.Names, ",")
		}
		flags = append(flags, "--tls-sni-cert-key="+each.CertFile+","+each.KeyFile+names)
	}
	p, err := apiprocess.Start(apiprocess.Options{Logf: t.Logf, Dir: certDir, Flags: flags, EtcdURL: GetEtcdURL(), EtcdPrefix: path.Join("/", uuid.New().String(), "registry")})
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		<-stopCh
		p.Stop()
		os.RemoveAll(certDir)
	}()
	config := &rest.Config{Host: p.URL, BearerToken: apiprocess.Token, TLSClientConfig: rest.TLSClientConfig{CAFile: p.CertFile}, QPS: 1000, Burst: 10000, WrapTransport: apiprocess.Translated}
	return client.NewForConfigOrDie(config), config
}
