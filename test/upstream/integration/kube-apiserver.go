// StartTestServer starts the kube-apiserver in PATH as a process.
package testing

import (
	"fmt"
	"io/ioutil"
	"os"

	"github.com/spf13/pflag"

	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storageversion"
	restclient "k8s.io/client-go/rest"
	"k8s.io/kubernetes/cmd/kube-apiserver/app/options"
	"k8s.io/kubernetes/test/utils/apiprocess"
)

func StartTestServer(t Logger, instanceOptions *TestServerInstanceOptions, customFlags []string, storageConfig *storagebackend.Config) (result TestServer, err error) {
	if instanceOptions == nil {
		instanceOptions = NewDefaultTestServerOptions()
	}
	if instanceOptions.StorageVersionWrapFunc != nil {
		return result, fmt.Errorf("REACHES-IN: StorageVersionWrapFunc")
	}
	result.TmpDir, err = ioutil.TempDir("", "kubernetes-kube-apiserver")
	if err != nil {
		return result, err
	}
	s := options.NewServerRunOptions()
	fs := pflag.NewFlagSet("test", pflag.PanicOnError)
	for _, f := range s.Flags().FlagSets {
		fs.AddFlagSet(f)
	}
	s.Etcd.StorageConfig = *storageConfig
	if err := fs.Parse(customFlags); err != nil {
		return result, err
	}
	p, err := apiprocess.Start(apiprocess.Options{Logf: t.Logf, Dir: result.TmpDir, Flags: customFlags, EtcdURL: s.Etcd.StorageConfig.Transport.ServerList[0], EtcdPrefix: s.Etcd.StorageConfig.Prefix})
	if err != nil {
		os.RemoveAll(result.TmpDir)
		return result, err
	}
	s.SecureServing.BindPort = p.Port
	s.SecureServing.ServerCert.CertDirectory = result.TmpDir
	s.SecureServing.ServerCert.CertKey.CertFile = p.CertFile
	s.Authentication.ClientCert.ClientCA = p.ClientCAFile
	s.Authentication.RequestHeader.ClientCAFile = p.ProxyCAFile
	result.ClientConfig = &restclient.Config{Host: p.URL, BearerToken: apiprocess.Token, TLSClientConfig: restclient.TLSClientConfig{CAData: p.CA}, QPS: 1000, Burst: 10000, WrapTransport: apiprocess.Translated}
	// Tests access the store with the options that they passed.
	storageConfig.Transport.ServerList, storageConfig.Prefix = []string{p.StoreURL}, p.StorePrefix
	s.Etcd.StorageConfig = *storageConfig
	result.ServerOpts = s
	dir := result.TmpDir
	// Like an in-process server, it is stopped without waiting; open requests are still answered.
	result.TearDownFn = func() {
		p.Signal()
		go func() { p.Stop(); os.RemoveAll(dir) }()
	}
	return result, nil
}
