// startMasterOrDie starts a process behind a proxy that authenticates with the test's authenticator. The test's
// authorizer is used as an authorization webhook.
package framework

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io/ioutil"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"strings"

	"github.com/go-openapi/spec"
	"github.com/google/uuid"

	authorizationv1 "k8s.io/api/authorization/v1"
	authauthenticator "k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	authorizerunion "k8s.io/apiserver/pkg/authorization/union"
	openapinamer "k8s.io/apiserver/pkg/endpoints/openapi"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/options"
	serverstorage "k8s.io/apiserver/pkg/server/storage"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	restclient "k8s.io/client-go/rest"
	"k8s.io/component-base/version"
	"k8s.io/klog/v2"
	openapicommon "k8s.io/kube-openapi/pkg/common"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/controlplane"
	"k8s.io/kubernetes/pkg/generated/openapi"
	"k8s.io/kubernetes/pkg/kubeapiserver"
	kubeletclient "k8s.io/kubernetes/pkg/kubelet/client"
	"k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac"
	"k8s.io/kubernetes/test/utils/apiprocess"
)

func startMasterOrDie(masterConfig *controlplane.Config, incomingServer *httptest.Server, masterReceiver MasterReceiver) (*controlplane.Instance, *httptest.Server, CloseFunc) {
	m := &controlplane.Instance{GenericAPIServer: &genericapiserver.GenericAPIServer{Handler: &genericapiserver.APIServerHandler{}}}
	s := incomingServer
	if s == nil {
		s = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { m.GenericAPIServer.Handler.ServeHTTP(w, r) }))
	}
	if masterConfig == nil {
		masterConfig = NewMasterConfig()
	}
	generic := masterConfig.GenericConfig
	loopback := generic.LoopbackClientConfig
	if loopback == nil {
		loopback = &restclient.Config{QPS: 1000, Burst: 1000, ContentConfig: restclient.ContentConfig{NegotiatedSerializer: legacyscheme.Codecs}}
		generic.LoopbackClientConfig = loopback
	}
	loopback.Host, loopback.BearerToken = s.URL, apiprocess.Token
	dir, err := ioutil.TempDir("", "master")
	if err != nil {
		klog.Fatal(err)
	}
	flags := []string{"--anonymous-auth=false"}
	// Names of the packages that the test imports them from.
	admission := strings.ToLower(fmt.Sprintf("%T", generic.AdmissionControl))
	if chain := reflect.ValueOf(generic.AdmissionControl); chain.Kind() == reflect.Slice {
		for i := 0; i < chain.Len(); i++ {
			admission += strings.ToLower(fmt.Sprintf(" %T", chain.Index(i).Interface()))
		}
	}
	var off []string
	for _, plugin := range strings.Split(os.Getenv("APISERVER_ADMISSION"), ",") {
		if !strings.Contains(admission, strings.ToLower(plugin)) {
			off = append(off, plugin)
		}
	}
	flags = append(flags, "--disable-admission-plugins="+strings.Join(off, ","))
	// APIs that are off by default.
	if strings.Contains(admission, "podtolerationrestriction") {
		flags = append(flags, "--enable-admission-plugins=PodTolerationRestriction")
	}
	if file := limitedResources(generic.AdmissionControl, dir); file != "" {
		flags = append(flags, "--admission-control-config-file="+file)
	}
	if generic.Authorization.Authorizer == nil {
		generic.Authorization.Authorizer = alwaysAllow{}
	}
	var asked *httptest.Server
	switch authorizer := generic.Authorization.Authorizer.(type) {
	case alwaysAllow:
	case *rbac.RBACAuthorizer:
		flags = append(flags, "--authorization-mode=RBAC")
	default:
		if fmt.Sprintf("%T", authorizer) == "authorizerfactory.alwaysAllowAuthorizer" {
			break
		}
		asked = httptest.NewServer(answerReviews(authorizerunion.New(authorizerfactory.NewPrivilegedGroups(user.SystemPrivilegedGroup), authorizer)))
		file := filepath.Join(dir, "authorizer.kubeconfig")
		text := "apiVersion: v1\nkind: Config\nclusters: [{name: a, cluster: {server: '" + asked.URL + "'}}]\nusers: [{name: a, user: {}}]\ncontexts: [{name: a, context: {cluster: a, user: a}}]\ncurrent-context: a\n"
		if err := ioutil.WriteFile(file, []byte(text), 0600); err != nil {
			klog.Fatal(err)
		}
		flags = append(flags, "--authorization-mode=Webhook", "--authorization-webhook-config-file="+file, "--authorization-webhook-version=v1",
			"--authorization-webhook-cache-authorized-ttl=0s", "--authorization-webhook-cache-unauthorized-ttl=0s")
	}
	if masterConfig.ExtraConfig.ServiceIPRange.IP != nil {
		flags = append(flags, "--service-cluster-ip-range="+masterConfig.ExtraConfig.ServiceIPRange.String())
	} else {
		flags = append(flags, "--service-cluster-ip-range=10.0.0.0/24")
	}
	if generic.MaxRequestsInFlight != 0 {
		flags = append(flags, fmt.Sprintf("--max-requests-inflight=%d", generic.MaxRequestsInFlight), fmt.Sprintf("--max-mutating-requests-inflight=%d", generic.MaxMutatingRequestsInFlight))
	}
	if generic.MinRequestTimeout != 1800 && generic.MinRequestTimeout != 0 {
		flags = append(flags, fmt.Sprintf("--min-request-timeout=%d", generic.MinRequestTimeout))
	}
	if issuer := masterConfig.ExtraConfig.ServiceAccountIssuerURL; issuer != "" {
		flags = append(flags, "--service-account-issuer="+issuer)
	}
	if ip := masterConfig.GenericConfig.PublicAddress; ip != nil {
		flags = append(flags, fmt.Sprintf("--external-hostname=%v:443", ip), fmt.Sprintf("--advertise-address=%v", ip))
	}
	if len(generic.Authentication.APIAudiences) > 0 {
		flags = append(flags, "--api-audiences="+strings.Join(generic.Authentication.APIAudiences, ","))
	}
	if masterConfig.ExtraConfig.ServiceAccountMaxExpiration != 0 {
		flags = append(flags, "--service-account-max-token-expiration="+masterConfig.ExtraConfig.ServiceAccountMaxExpiration.String(),
			fmt.Sprintf("--service-account-extend-token-expiration=%v", masterConfig.ExtraConfig.ExtendExpiration))
	}
	if file := os.Getenv("APISERVER_SA_KEY"); file != "" && masterConfig.ExtraConfig.ServiceAccountIssuer != nil {
		flags = append(flags, "--service-account-signing-key-file="+file, "--service-account-key-file="+file)
	}
	storage := masterConfig.ExtraConfig.StorageFactory.(*serverstorage.DefaultStorageFactory).StorageConfig
	p, err := apiprocess.Start(apiprocess.Options{Logf: klog.Infof, Dir: dir, Flags: flags, EtcdURL: storage.Transport.ServerList[0], EtcdPrefix: storage.Prefix})
	if err != nil {
		klog.Fatalf("%v: %v", err, flags)
	}
	target, _ := url.Parse(p.URL)
	cert, err := p.ProxyClient()
	if err != nil {
		klog.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(target)
	proxy.FlushInterval = -1
	proxy.Transport = apiprocess.Translated(&http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true, Certificates: []tls.Certificate{cert}}, DisableCompression: true, MaxIdleConnsPerHost: 100})
	authenticator := generic.Authentication.Authenticator
	if authenticator == nil {
		authenticator = authauthenticator.RequestFunc(alwaysEmpty)
	}
	m.GenericAPIServer.LoopbackClientConfig = generic.LoopbackClientConfig
	m.GenericAPIServer.Handler.FullHandlerChain = http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		for name := range req.Header {
			if strings.HasPrefix(name, "X-Remote-") {
				req.Header.Del(name)
			}
		}
		if req.Header.Get("Authorization") != "Bearer "+apiprocess.Token {
			// The authenticator removes the header.
			response, ok, err := authenticator.AuthenticateRequest(req)
			_ = err
			req.Header.Del("Authorization")
			if ok {
				name := response.User.GetName()
				if name == "" {
					name = "system:anonymous-but-allowed"
				}
				req.Header.Set("X-Remote-User", name)
				for _, group := range response.User.GetGroups() {
					req.Header.Add("X-Remote-Group", group)
				}
				for key, values := range response.User.GetExtra() {
					for _, value := range values {
						req.Header.Add("X-Remote-Extra-"+url.PathEscape(key), value)
					}
				}
			}
		}
		proxy.ServeHTTP(w, req)
	})
	if masterReceiver != nil {
		masterReceiver.SetMaster(m)
	}
	return m, s, func() {
		p.Stop()
		if asked != nil {
			asked.Close()
		}
		s.CloseClientConnections()
		s.Close()
		os.RemoveAll(dir)
	}
}

// limitedResources writes the configuration of the test's quota plug-in to a file for the server. It returns an empty
// path if there is none.
func limitedResources(plugin interface{}, dir string) string {
	v := reflect.ValueOf(plugin)
	if v.Kind() != reflect.Ptr || v.Elem().Type().Name() != "QuotaAdmission" {
		return ""
	}
	config := v.Elem().FieldByName("config")
	if config.IsNil() {
		return ""
	}
	limited := config.Elem().FieldByName("LimitedResources")
	if limited.Len() == 0 {
		return ""
	}
	var entries []string
	for i := 0; i < limited.Len(); i++ {
		var contains []string
		list := limited.Index(i).FieldByName("MatchContains")
		for j := 0; j < list.Len(); j++ {
			contains = append(contains, list.Index(j).String())
		}
		entries = append(entries, fmt.Sprintf("{apiGroup: %q, resource: %q, matchContains: [%s]}",
			limited.Index(i).FieldByName("APIGroup").String(), limited.Index(i).FieldByName("Resource").String(), strings.Join(contains, ", ")))
	}
	text := "apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\nplugins:\n- name: ResourceQuota\n  configuration: {apiVersion: apiserver.config.k8s.io/v1, kind: ResourceQuotaConfiguration, limitedResources: [" +
		strings.Join(entries, ", ") + "]}\n"
	file := filepath.Join(dir, "admission.yaml")
	if err := ioutil.WriteFile(file, []byte(text), 0600); err != nil {
		klog.Fatal(err)
	}
	return file
}

// answerReviews serves access reviews of the tested server with the test's authorizer.
func answerReviews(a authorizer.Authorizer) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		review := &authorizationv1.SubjectAccessReview{}
		if err := json.NewDecoder(req.Body).Decode(review); err != nil {
			http.Error(w, err.Error(), 400)
			return
		}
		extra := map[string][]string{}
		for key, values := range review.Spec.Extra {
			extra[key] = values
		}
		attributes := authorizer.AttributesRecord{User: &user.DefaultInfo{Name: strings.TrimPrefix(review.Spec.User, "system:anonymous-but-allowed"), UID: review.Spec.UID, Groups: review.Spec.Groups, Extra: extra}}
		if r := review.Spec.ResourceAttributes; r != nil {
			attributes.ResourceRequest = true
			attributes.Namespace, attributes.Verb, attributes.APIGroup, attributes.APIVersion = r.Namespace, r.Verb, r.Group, r.Version
			attributes.Resource, attributes.Subresource, attributes.Name = r.Resource, r.Subresource, r.Name
		} else if n := review.Spec.NonResourceAttributes; n != nil {
			attributes.Verb, attributes.Path = n.Verb, n.Path
		}
		decision, reason, err := a.Authorize(req.Context(), attributes)
		review.Status = authorizationv1.SubjectAccessReviewStatus{Allowed: decision == authorizer.DecisionAllow, Denied: decision == authorizer.DecisionDeny, Reason: reason}
		if err != nil {
			review.Status.EvaluationError = err.Error()
		}
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(review)
	})
}
