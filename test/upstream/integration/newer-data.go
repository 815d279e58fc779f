// Objects of kinds and versions that are newer than 1.20, for tests that use all kinds.
package etcd

import (
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// If upstream's table has another version of a kind, its object is used.
var newer = map[string]string{
	"apps/v1/statefulsets":                             `{"metadata": {"name": "ss3"}, "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"image": "i", "name": "c"}]}}}}`,
	"authentication.k8s.io/v1/selfsubjectreviews":      `{}`,
	"authentication.k8s.io/v1beta1/selfsubjectreviews": `{}`,
	"autoscaling/v2/horizontalpodautoscalers":          "autoscaling/v1/horizontalpodautoscalers",
	"batch/v1/cronjobs":                                "batch/v1beta1/cronjobs",
	"discovery.k8s.io/v1/endpointslices":               "discovery.k8s.io/v1beta1/endpointslices",
	"policy/v1/poddisruptionbudgets":                   "policy/v1beta1/poddisruptionbudgets",
	"storage.k8s.io/v1/csistoragecapacities":           `{"metadata": {"name": "csc-2"}, "storageClassName": "sc1"}`,
	"storage.k8s.io/v1beta1/csistoragecapacities":      `{"metadata": {"name": "csc-3"}, "storageClassName": "sc1"}`,
	"storage.k8s.io/v1/volumeattributesclasses":        `{"metadata": {"name": "vac1"}, "driverName": "d.example.com", "parameters": {"a": "b"}}`,
	"networking.k8s.io/v1/ipaddresses":                 `{"metadata": {"name": "192.168.1.2"}, "spec": {"parentRef": {"resource": "services", "name": "test", "namespace": "default"}}}`,
	"networking.k8s.io/v1/servicecidrs":                `{"metadata": {"name": "range-1"}, "spec": {"cidrs": ["192.168.0.0/16"]}}`,
	"resource.k8s.io/v1/deviceclasses":                 `{"metadata": {"name": "dc1"}, "spec": {}}`,
	"resource.k8s.io/v1/resourceclaims":                `{"metadata": {"name": "rc1"}, "spec": {"devices": {}}}`,
	"resource.k8s.io/v1/resourceclaimtemplates":        `{"metadata": {"name": "rct1"}, "spec": {"spec": {"devices": {}}}}`,
	"resource.k8s.io/v1/resourceslices":                `{"metadata": {"name": "rsl1"}, "spec": {"driver": "d.example.com", "nodeName": "n", "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1}}}`,
}

func init() {
	for _, version := range []string{"v1", "v1beta1", "v1alpha1"} {
		group := "admissionregistration.k8s.io/" + version + "/"
		match := `"matchConstraints": {"resourceRules": [{"apiGroups": ["none.example.com"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["nothing"]}]}`
		newer[group+"validatingadmissionpolicies"] = `{"metadata": {"name": "vap1` + version + `"}, "spec": {` + match + `, "validations": [{"expression": "true"}]}}`
		newer[group+"validatingadmissionpolicybindings"] = `{"metadata": {"name": "vapb1` + version + `"}, "spec": {"policyName": "none", "validationActions": ["Deny"]}}`
		newer[group+"mutatingadmissionpolicies"] = `{"metadata": {"name": "map1` + version + `"}, "spec": {` + match +
			`, "reinvocationPolicy": "Never", "mutations": [{"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": "Object{}"}}]}}`
		newer[group+"mutatingadmissionpolicybindings"] = `{"metadata": {"name": "mapb1` + version + `"}, "spec": {"policyName": "none"}}`
	}
	for _, version := range []string{"v1", "v1beta3", "v1beta2"} {
		group := "flowcontrol.apiserver.k8s.io/" + version + "/"
		shares := "nominalConcurrencyShares"
		if version == "v1beta2" {
			shares = "assuredConcurrencyShares"
		}
		newer[group+"flowschemas"] = `{"metadata": {"name": "fs-` + version + `"}, "spec": {"priorityLevelConfiguration": {"name": "name1"}}}`
		newer[group+"prioritylevelconfigurations"] = `{"metadata": {"name": "plc-` + version + `"}, "spec": {"type": "Limited", "limited": {"` + shares + `": 3, "limitResponse": {"type": "Reject"}}}}`
	}
}

func resourceOf(path string) schema.GroupVersionResource {
	parts := strings.Split(path, "/")
	return gvr(parts[0], parts[1], parts[2])
}

// GetEtcdStorageDataForNamespace returns upstream's table with the newer kinds and versions.
func GetEtcdStorageDataForNamespace(namespace string) map[schema.GroupVersionResource]StorageData {
	data := upstreamStorageData(namespace)
	for path, stub := range newer {
		if !strings.HasPrefix(stub, "{") {
			// Uses another name, because the other object may still exist.
			stub = strings.Replace(data[resourceOf(stub)].Stub, `"name": "`, `"name": "newer-`, 1)
		}
		data[resourceOf(path)] = StorageData{Stub: stub}
	}
	return data
}
