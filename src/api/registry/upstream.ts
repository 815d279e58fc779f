/**
 * Groups and versions of kube-apiserver 1.36 that also exist here, and whether upstream serves them by default. Source:
 * pkg/controlplane/instance.go of Kubernetes.
 */
const UPSTREAM: ReadonlyMap<string, boolean> = new Map([
  ['/v1', true],
  ['admissionregistration.k8s.io/v1', true],
  ['admissionregistration.k8s.io/v1beta1', false],
  ['admissionregistration.k8s.io/v1alpha1', false],
  ['apiextensions.k8s.io/v1', true],
  ['apiregistration.k8s.io/v1', true],
  ['apps/v1', true],
  ['authentication.k8s.io/v1', true],
  ['authorization.k8s.io/v1', true],
  ['autoscaling/v1', true],
  ['autoscaling/v2', true],
  ['batch/v1', true],
  ['certificates.k8s.io/v1', true],
  ['coordination.k8s.io/v1', true],
  ['discovery.k8s.io/v1', true],
  ['events.k8s.io/v1', true],
  ['flowcontrol.apiserver.k8s.io/v1', true],
  ['networking.k8s.io/v1', true],
  ['node.k8s.io/v1', true],
  ['policy/v1', true],
  ['rbac.authorization.k8s.io/v1', true],
  ['resource.k8s.io/v1', true],
  ['resource.k8s.io/v1beta2', false],
  ['scheduling.k8s.io/v1', true],
  ['storage.k8s.io/v1', true],
  ['storagemigration.k8s.io/v1beta1', false],
]);

/** Whether kube-apiserver serves the version by default. Undefined if kube-apiserver does not have the version. */
export const isUpstreamDefault = (group: string, version: string): boolean | undefined =>
  UPSTREAM.get(`${group}/${version}`);
