package apiprocess

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"io/ioutil"
	"net/http"
	"strconv"
	"strings"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/install"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensionsv1beta1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
)

// Definitions of v1beta1, which no current Kubernetes serves, are spoken to the server as v1.
var (
	translation = runtime.NewScheme()
	codecs      = serializer.NewCodecFactory(translation)
)

func init() {
	install.Install(translation)
	metav1.AddToGroupVersion(translation, schema.GroupVersion{Version: "v1"})
}

const betaRegistration, registration = "admissionregistration.k8s.io/v1beta1", "admissionregistration.k8s.io/v1"

const beta, stable, approved = "apiextensions.k8s.io/v1beta1", "apiextensions.k8s.io/v1", apiextensionsv1beta1.KubeAPIApprovedAnnotation

func convert(data []byte, to schema.GroupVersion) []byte {
	var head struct {
		Kind       string
		APIVersion string
	}
	if json.Unmarshal(data, &head) != nil || !strings.HasPrefix(head.Kind, "CustomResourceDefinition") {
		return data
	}
	object, _, err := codecs.UniversalDecoder(apiextensions.SchemeGroupVersion).Decode(data, nil, nil)
	if err != nil {
		return data
	}
	preserve := true
	if crd, ok := object.(*apiextensions.CustomResourceDefinition); ok && to == apiextensionsv1.SchemeGroupVersion {
		all := crd.Spec.PreserveUnknownFields == nil || *crd.Spec.PreserveUnknownFields
		if head.APIVersion == beta {
			// Of groups of Kubernetes v1 wants to know who has approved them.
			if strings.HasSuffix(crd.Spec.Group, ".k8s.io") && crd.Annotations[approved] == "" {
				if crd.Annotations == nil {
					crd.Annotations = map[string]string{}
				}
				crd.Annotations[approved] = "unapproved, a test"
			}
			fix := func(v **apiextensions.CustomResourceValidation) {
				if *v == nil {
					*v = &apiextensions.CustomResourceValidation{}
				}
				if (*v).OpenAPIV3Schema == nil {
					(*v).OpenAPIV3Schema = &apiextensions.JSONSchemaProps{Type: "object", XPreserveUnknownFields: &preserve}
				} else if all {
					if (*v).OpenAPIV3Schema.Type == "" {
						(*v).OpenAPIV3Schema.Type = "object"
					}
					(*v).OpenAPIV3Schema.XPreserveUnknownFields = &preserve
				}
			}
			perVersion := false
			for i := range crd.Spec.Versions {
				perVersion = perVersion || crd.Spec.Versions[i].Schema != nil
			}
			if perVersion {
				for i := range crd.Spec.Versions {
					fix(&crd.Spec.Versions[i].Schema)
				}
			} else {
				fix(&crd.Spec.Validation)
			}
			no := false
			crd.Spec.PreserveUnknownFields = &no
		}
	}
	var out bytes.Buffer
	if err := codecs.LegacyCodec(to).Encode(object, &out); err != nil {
		return data
	}
	return out.Bytes()
}

type translator struct{ next http.RoundTripper }

// Translated answers definitions of v1beta1.
func Translated(next http.RoundTripper) http.RoundTripper { return translator{next} }

func (t translator) RoundTrip(req *http.Request) (*http.Response, error) {
	if Prefixes() {
		return t.next.RoundTrip(req)
	}
	if strings.HasPrefix(req.URL.Path, "/apis/"+betaRegistration+"/") && strings.Contains(req.URL.Path, "webhookconfigurations") {
		return t.register(req)
	}
	if !strings.HasPrefix(req.URL.Path, "/apis/"+beta+"/") {
		return t.next.RoundTrip(req)
	}
	req, err := asked(req, beta, stable, func(data []byte) []byte {
		if req.Method == "PATCH" {
			return bytes.ReplaceAll(data, []byte(beta), []byte(stable))
		}
		return convert(data, apiextensionsv1.SchemeGroupVersion)
	})
	if err != nil {
		return nil, err
	}
	response, err := t.next.RoundTrip(req)
	if err != nil || !strings.Contains(response.Header.Get("Content-Type"), "json") {
		return response, err
	}
	if req.URL.Query().Get("watch") != "" && req.URL.Query().Get("watch") != "false" {
		reader, writer := io.Pipe()
		body := response.Body
		go func() {
			lines := bufio.NewReader(body)
			for {
				line, err := lines.ReadBytes('\n')
				if len(line) > 0 {
					var event struct {
						Type   string          `json:"type"`
						Object json.RawMessage `json:"object"`
					}
					if json.Unmarshal(line, &event) == nil {
						event.Object = bytes.TrimSpace(convert(event.Object, apiextensionsv1beta1.SchemeGroupVersion))
						line, _ = json.Marshal(event)
						line = append(line, '\n')
					}
					if _, err := writer.Write(line); err != nil {
						break
					}
				}
				if err != nil {
					writer.CloseWithError(err)
					break
				}
			}
			body.Close()
		}()
		response.Body = struct {
			io.Reader
			io.Closer
		}{reader, closers{reader, body}}
		response.ContentLength = -1
		return response, nil
	}
	return answered(response, func(data []byte) []byte { return convert(data, apiextensionsv1beta1.SchemeGroupVersion) })
}

// asked is the request as it goes to the server: another version in its path, and what change makes of its body.
func asked(req *http.Request, from, to string, change func([]byte) []byte) (*http.Request, error) {
	req = req.Clone(req.Context())
	req.URL.Path = strings.Replace(req.URL.Path, from, to, 1)
	req.URL.RawPath = ""
	if req.Body == nil {
		return req, nil
	}
	data, err := ioutil.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	req.Body.Close()
	data = change(data)
	req.Body = ioutil.NopCloser(bytes.NewReader(data))
	req.ContentLength = int64(len(data))
	return req, nil
}

// answered is the response with what change makes of its body.
func answered(response *http.Response, change func([]byte) []byte) (*http.Response, error) {
	data, err := ioutil.ReadAll(response.Body)
	response.Body.Close()
	if err != nil {
		return nil, err
	}
	data = change(data)
	response.Body = ioutil.NopCloser(bytes.NewReader(data))
	response.ContentLength = int64(len(data))
	response.Header.Set("Content-Length", strconv.Itoa(len(data)))
	return response, nil
}

// register speaks of webhooks as v1, which no current Kubernetes takes in an older version: what v1beta1 has other defaults for, or may leave out, is said.
func (t translator) register(req *http.Request) (*http.Response, error) {
	req, err := asked(req, betaRegistration, registration, registered)
	if err != nil {
		return nil, err
	}
	response, err := t.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	return answered(response, func(data []byte) []byte {
		return bytes.ReplaceAll(data, []byte(`"`+registration+`"`), []byte(`"`+betaRegistration+`"`))
	})
}

func registered(data []byte) []byte {
	var object map[string]interface{}
	if json.Unmarshal(data, &object) != nil || object["apiVersion"] != betaRegistration {
		return data
	}
	object["apiVersion"] = registration
	hooks, _ := object["webhooks"].([]interface{})
	for _, each := range hooks {
		hook, ok := each.(map[string]interface{})
		if !ok {
			continue
		}
		for field, usual := range map[string]interface{}{
			"failurePolicy": "Ignore", "matchPolicy": "Exact", "timeoutSeconds": 30, "admissionReviewVersions": []string{"v1beta1"},
		} {
			if hook[field] == nil {
				hook[field] = usual
			}
		}
		if effects := hook["sideEffects"]; effects != "NoneOnDryRun" {
			hook["sideEffects"] = "None"
		}
	}
	made, err := json.Marshal(object)
	if err != nil {
		return data
	}
	return made
}

type closers [2]io.Closer

func (c closers) Close() error {
	c[0].Close()
	return c[1].Close()
}
