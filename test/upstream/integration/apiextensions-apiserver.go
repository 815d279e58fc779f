// StartTestServer for packages that need a server for custom resources. It starts a whole kube-apiserver.
package testing

import (
	"io/ioutil"
	"os"

	"github.com/spf13/pflag"

	"k8s.io/apiextensions-apiserver/pkg/cmd/server/options"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	restclient "k8s.io/client-go/rest"
	"k8s.io/kubernetes/test/utils/apiprocess"
)

func StartTestServer(t Logger, instanceOptions *TestServerInstanceOptions, customFlags []string, storageConfig *storagebackend.Config) (result TestServer, err error) {
	result.TmpDir, err = ioutil.TempDir("", "apiextensions-apiserver")
	if err != nil {
		return result, err
	}
	fs := pflag.NewFlagSet("test", pflag.PanicOnError)
	s := options.NewCustomResourceDefinitionsServerOptions(os.Stdout, os.Stderr)
	s.AddFlags(fs)
	if storageConfig != nil {
		s.RecommendedOptions.Etcd.StorageConfig = *storageConfig
	}
	fs.Parse(customFlags)
	var flags []string
	for i := 0; i < len(customFlags); i++ {
		each := customFlags[i]
		switch each {
		case "--authentication-skip-lookup":
			continue
		case "--authentication-kubeconfig", "--authorization-kubeconfig", "--kubeconfig":
			i++
			continue
		}
		flags = append(flags, each)
	}
	p, err := apiprocess.Start(apiprocess.Options{Logf: t.Logf, Dir: result.TmpDir, Flags: flags, EtcdURL: s.RecommendedOptions.Etcd.StorageConfig.Transport.ServerList[0], EtcdPrefix: s.RecommendedOptions.Etcd.StorageConfig.Prefix})
	if err != nil {
		os.RemoveAll(result.TmpDir)
		return result, err
	}
	result.ClientConfig = &restclient.Config{Host: p.URL, BearerToken: apiprocess.Token, TLSClientConfig: restclient.TLSClientConfig{CAData: p.CA}, QPS: 1000, Burst: 10000, WrapTransport: apiprocess.Translated}
	s.RecommendedOptions.Etcd.StorageConfig.Transport.ServerList = []string{p.StoreURL}
	s.RecommendedOptions.Etcd.StorageConfig.Prefix = p.StorePrefix
	result.ServerOpts = s
	dir := result.TmpDir
	// TestEtcdStorage reads the address of the store from the environment.
	os.Setenv("KUBE_INTEGRATION_ETCD_URL", p.StoreURL)
	result.TearDownFn = func() { os.Unsetenv("KUBE_INTEGRATION_ETCD_URL"); p.Stop(); os.RemoveAll(dir) }
	return result, nil
}
