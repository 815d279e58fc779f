/**
 * What a new object of a kind holds before anybody has set a field: structures that upstream's types have by value, and lists and maps that
 * are written when they are empty. Creating the object does not make these fields owned, only what is in them. Source: the field
 * types of k8s.io/api.
 */
import type { JsonObject } from '../meta/object.ts';

const POD_SPEC = { containers: null };
const TEMPLATE = { metadata: {}, spec: POD_SPEC };
const JOB = { template: TEMPLATE };
const WORKLOAD = { selector: null, template: TEMPLATE };
const ROLE_REF = { roleRef: {} };
const WITH_SPEC = { spec: {}, status: {} };

const SKELETONS: Readonly<Record<string, JsonObject>> = {
  'admissionregistration.v1.MutatingAdmissionPolicy': { spec: {} },
  'admissionregistration.v1.MutatingAdmissionPolicyBinding': { spec: {} },
  'admissionregistration.v1.ValidatingAdmissionPolicy': WITH_SPEC,
  'admissionregistration.v1.ValidatingAdmissionPolicyBinding': { spec: {} },
  'apiextensions.v1.CustomResourceDefinition': {
    spec: { names: {}, versions: null },
    status: { acceptedNames: {}, conditions: null, storedVersions: null },
  },
  'apiextensions.v1beta1.CustomResourceDefinition': {
    spec: { names: {} },
    status: { acceptedNames: {}, conditions: null, storedVersions: null },
  },
  'apiregistration.v1.APIService': WITH_SPEC,
  'apps.v1.ControllerRevision': { data: null },
  'apps.v1.DaemonSet': { spec: { ...WORKLOAD, updateStrategy: {} }, status: {} },
  'apps.v1.Deployment': { spec: { ...WORKLOAD, strategy: {} }, status: {} },
  'apps.v1.ReplicaSet': { spec: WORKLOAD, status: {} },
  'apps.v1.StatefulSet': { spec: { ...WORKLOAD, updateStrategy: {} }, status: {} },
  'autoscaling.v1.HorizontalPodAutoscaler': { spec: { scaleTargetRef: {} }, status: {} },
  'autoscaling.v2.HorizontalPodAutoscaler': { spec: { scaleTargetRef: {} }, status: { currentMetrics: null } },
  'batch.v1.CronJob': { spec: { jobTemplate: { metadata: {}, spec: JOB } }, status: {} },
  'batch.v1.Job': { spec: JOB, status: {} },
  'certificates.v1.CertificateSigningRequest': { spec: { request: null }, status: {} },
  'coordination.v1.Lease': { spec: {} },
  'core.v1.Event': {
    involvedObject: {},
    source: {},
    firstTimestamp: null,
    lastTimestamp: null,
    eventTime: null,
    reportingComponent: '',
    reportingInstance: '',
  },
  'core.v1.LimitRange': { spec: { limits: null } },
  'core.v1.Namespace': WITH_SPEC,
  'core.v1.Node': { spec: {}, status: { daemonEndpoints: { kubeletEndpoint: {} }, nodeInfo: {} } },
  'core.v1.PersistentVolume': WITH_SPEC,
  'core.v1.PersistentVolumeClaim': { spec: { resources: {} }, status: {} },
  'core.v1.Pod': { spec: POD_SPEC, status: {} },
  'core.v1.PodTemplate': { template: TEMPLATE },
  'core.v1.ReplicationController': WITH_SPEC,
  'core.v1.ResourceQuota': WITH_SPEC,
  'core.v1.Service': { spec: {}, status: { loadBalancer: {} } },
  'discovery.v1.EndpointSlice': { endpoints: null, ports: null },
  'events.v1.Event': {
    eventTime: null,
    regarding: {},
    deprecatedSource: {},
    deprecatedFirstTimestamp: null,
    deprecatedLastTimestamp: null,
  },
  'flowcontrol.v1.FlowSchema': { spec: { priorityLevelConfiguration: {} }, status: {} },
  'flowcontrol.v1.PriorityLevelConfiguration': WITH_SPEC,
  'networking.v1.Ingress': { spec: {}, status: { loadBalancer: {} } },
  'networking.v1.IngressClass': { spec: {} },
  'networking.v1.NetworkPolicy': { spec: { podSelector: {} } },
  'policy.v1.PodDisruptionBudget': WITH_SPEC,
  'policy.v1beta1.PodSecurityPolicy': { spec: { seLinux: {}, runAsUser: {}, supplementalGroups: {}, fsGroup: {} } },
  'rbac.v1.ClusterRole': { rules: null },
  'rbac.v1.ClusterRoleBinding': ROLE_REF,
  'rbac.v1.Role': { rules: null },
  'rbac.v1.RoleBinding': ROLE_REF,
  'storage.v1.CSIDriver': { spec: {} },
  'storage.v1.CSINode': { spec: { drivers: null } },
  'storage.v1.VolumeAttachment': { spec: { source: {} }, status: {} },
};

const NOTHING: JsonObject = {};

/**
 * `schemaName` is that of the stored version: `io.k8s.api.apps.v1.Deployment`. In the version `alias`, what has no entry of its own
 * holds the same.
 */
export function skeletonOf(
  schemaName: string,
  alias?: { readonly group: string; readonly version: string },
): JsonObject {
  const group = schemaName.lastIndexOf('.', schemaName.lastIndexOf('.', schemaName.lastIndexOf('.') - 1) - 1);
  const name = schemaName.slice(group + 1);
  if (alias !== undefined) {
    const inAlias = [alias.group.split('.')[0], alias.version, name.slice(name.lastIndexOf('.') + 1)].join('.');
    if (Object.hasOwn(SKELETONS, inAlias)) return SKELETONS[inAlias] ?? NOTHING;
  }
  return SKELETONS[name] ?? NOTHING;
}
