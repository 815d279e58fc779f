/** security.openshift.io/v1. Source: openshift/api security/v1 of release 4.10, field names and meaning. */
import { type DeclaredField, declarePackage } from './declare.ts';

const TEMPLATE: DeclaredField = ['!#core.PodTemplateSpec', 'The pod template to check.'];

export const securityPackage = declarePackage('security.v1', {
  SecurityContextConstraints: {
    isKind: true,
    about: 'SecurityContextConstraints limits the security settings that pods may request, and supplies defaults.',
    fields: {
      priority: ['int32', 'Order in which constraints are tried, highest first; default 0.'],
      allowPrivilegedContainer: ['boolean', 'Whether containers may be privileged.'],
      defaultAddCapabilities: ['[]string', 'Capabilities added to containers that do not drop them.'],
      requiredDropCapabilities: ['[]string', 'Capabilities that containers must drop.'],
      allowedCapabilities: ['[]string', 'Capabilities that containers may add; * allows all.'],
      allowHostDirVolumePlugin: ['boolean', 'Whether pods may use hostPath volumes.'],
      volumes: ['[]string', 'Volume types that pods may use; * allows all, none allows no volume.'],
      allowedFlexVolumes: ['[]#AllowedFlexVolume', 'Flex volume drivers; empty allows all where the type is allowed.'],
      allowHostNetwork: ['boolean', 'Whether pods may use the network of the host.'],
      allowHostPorts: ['boolean', 'Whether containers may use ports of the host.'],
      allowHostPID: ['boolean', 'Whether pods may use the process namespace of the host.'],
      allowHostIPC: ['boolean', 'Whether pods may use the IPC namespace of the host.'],
      defaultAllowPrivilegeEscalation: ['boolean', 'allowPrivilegeEscalation of containers that leave it out.'],
      allowPrivilegeEscalation: ['boolean', 'Whether containers may gain more privileges; default true.'],
      seLinuxContext: ['#SELinuxContextStrategyOptions', 'How SELinux labels are chosen.'],
      runAsUser: ['#RunAsUserStrategyOptions', 'How the user of containers is chosen.'],
      supplementalGroups: ['#SupplementalGroupsStrategyOptions', 'How supplemental groups are chosen.'],
      fsGroup: ['#FSGroupStrategyOptions', 'How the group of volumes is chosen.'],
      readOnlyRootFilesystem: ['boolean', 'Whether root file systems of containers must be read-only.'],
      users: ['[]string', 'Users that may use the constraints.'],
      groups: ['[]string', 'Groups that may use the constraints.'],
      seccompProfiles: ['[]string', 'Allowed seccomp profiles, the first one the default; * allows all.'],
      allowedUnsafeSysctls: ['[]string', 'Sysctls allowed beside the safe ones; a final * matches any suffix.'],
      forbiddenSysctls: ['[]string', 'Forbidden sysctls; a final * matches any suffix.'],
    },
  },
  AllowedFlexVolume: {
    about: 'AllowedFlexVolume is a flex volume driver.',
    fields: { driver: ['!string', 'Name of the driver.'] },
  },
  SELinuxContextStrategyOptions: {
    about: 'SELinuxContextStrategyOptions describes how SELinux labels are chosen.',
    fields: {
      type: ['string', 'MustRunAs or RunAsAny.'],
      seLinuxOptions: ['#core.SELinuxOptions', 'The label of MustRunAs; a missing level is that of the namespace.'],
    },
  },
  RunAsUserStrategyOptions: {
    about: 'RunAsUserStrategyOptions describes how the user of containers is chosen.',
    fields: {
      type: ['string', 'MustRunAs, MustRunAsRange, MustRunAsNonRoot or RunAsAny.'],
      uid: ['int64', 'The user of MustRunAs.'],
      uidRangeMin: ['int64', 'First user of MustRunAsRange; default: the range of the namespace.'],
      uidRangeMax: ['int64', 'Last user of MustRunAsRange; default: the range of the namespace.'],
    },
  },
  SupplementalGroupsStrategyOptions: {
    about: 'SupplementalGroupsStrategyOptions describes how supplemental groups are chosen.',
    fields: {
      type: ['string', 'MustRunAs or RunAsAny.'],
      ranges: ['[]#IDRange', 'Groups of MustRunAs; default: those of the namespace.'],
    },
  },
  FSGroupStrategyOptions: {
    about: 'FSGroupStrategyOptions describes how the group of volumes is chosen.',
    fields: {
      type: ['string', 'MustRunAs or RunAsAny.'],
      ranges: ['[]#IDRange', 'Groups of MustRunAs; default: the first group of the namespace.'],
    },
  },
  IDRange: {
    about: 'IDRange is a range of IDs, both ends included.',
    fields: { min: ['int64', 'First ID.'], max: ['int64', 'Last ID.'] },
  },
  RangeAllocation: {
    isKind: true,
    about: 'RangeAllocation records which blocks of a range are in use.',
    fields: {
      range: ['!string', 'The range and the size of its blocks, as 1000000000-1999999999/10000.'],
      data: ['!byte', 'A bit for each block, as a big-endian number.'],
    },
  },
  PodSecurityPolicySubjectReview: {
    isRequest: true,
    about: 'PodSecurityPolicySubjectReview checks whether a user, or a service account, may create a pod.',
    fields: {
      spec: ['!#PodSecurityPolicySubjectReviewSpec', 'The pod template and its subject.'],
      status: ['#PodSecurityPolicySubjectReviewStatus', 'The constraints that admit the pod.'],
    },
  },
  PodSecurityPolicySubjectReviewSpec: {
    about: 'PodSecurityPolicySubjectReviewSpec is a pod template and its subject.',
    fields: {
      template: TEMPLATE,
      user: ['string', 'The user; with no user and no groups, only the service account of the template counts.'],
      groups: ['[]string', 'Groups of the user.'],
    },
  },
  PodSecurityPolicySubjectReviewStatus: {
    about: 'PodSecurityPolicySubjectReviewStatus names the constraints that admit the pod.',
    fields: {
      allowedBy: ['#core.ObjectReference', 'The constraints that admit the pod; absent when none does.'],
      reason: ['string', 'One word for programs when no constraints admit the pod.'],
      template: ['#core.PodTemplateSpec', 'The template as the constraints change it.'],
    },
  },
  PodSecurityPolicySelfSubjectReview: {
    isRequest: true,
    about: 'PodSecurityPolicySelfSubjectReview checks whether the requester may create a pod.',
    fields: {
      spec: ['!#PodSecurityPolicySelfSubjectReviewSpec', 'The pod template.'],
      status: ['#PodSecurityPolicySubjectReviewStatus', 'The constraints that admit the pod.'],
    },
  },
  PodSecurityPolicySelfSubjectReviewSpec: {
    about: 'PodSecurityPolicySelfSubjectReviewSpec is a pod template.',
    fields: { template: TEMPLATE },
  },
  PodSecurityPolicyReview: {
    isRequest: true,
    about: 'PodSecurityPolicyReview checks which service accounts may run a pod.',
    fields: {
      spec: ['!#PodSecurityPolicyReviewSpec', 'The pod template and the service accounts.'],
      status: ['#PodSecurityPolicyReviewStatus', 'The service accounts whose pods are admitted.'],
    },
  },
  PodSecurityPolicyReviewSpec: {
    about: 'PodSecurityPolicyReviewSpec is a pod template and service accounts.',
    fields: {
      template: TEMPLATE,
      serviceAccountNames: ['[]string', 'Service accounts; default: that of the template, or default.'],
    },
  },
  PodSecurityPolicyReviewStatus: {
    about: 'PodSecurityPolicyReviewStatus lists the service accounts whose pods are admitted.',
    fields: {
      allowedServiceAccounts: ['[]#ServiceAccountPodSecurityPolicyReviewStatus', 'Those service accounts.'],
    },
  },
  ServiceAccountPodSecurityPolicyReviewStatus: {
    about: 'ServiceAccountPodSecurityPolicyReviewStatus is the answer for one service account.',
    fields: {
      name: ['!string', 'Name of the service account.'],
      allowedBy: ['#core.ObjectReference', 'The constraints that admit the pod.'],
      reason: ['string', 'One word for programs when no constraints admit the pod.'],
      template: ['#core.PodTemplateSpec', 'The template as the constraints change it.'],
    },
  },
});
