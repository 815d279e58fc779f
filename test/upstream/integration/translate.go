package apiprocess

import (
	"bytes"
	"encoding/json"
	"io/ioutil"
	"net/http"
	"strconv"
	"strings"
)

const betaRegistration, registration = "admissionregistration.k8s.io/v1beta1", "admissionregistration.k8s.io/v1"

type translator struct{ next http.RoundTripper }

// Translated serves v1beta1 webhook configurations.
func Translated(next http.RoundTripper) http.RoundTripper { return translator{next} }

func (t translator) RoundTrip(req *http.Request) (*http.Response, error) {
	if Prefixes() {
		return t.next.RoundTrip(req)
	}
	if strings.HasPrefix(req.URL.Path, "/apis/"+betaRegistration+"/") && strings.Contains(req.URL.Path, "webhookconfigurations") {
		return t.register(req)
	}
	return t.next.RoundTrip(req)
}

// asked returns the request for the server: with another version in its path, and its body changed by change.
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

// answered returns the response with its body changed by change.
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

// register converts webhooks to v1, the only version that current Kubernetes serves. Fields that v1beta1 defaults
// differently or makes optional are set.
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
