/** Fields that the kinds of operator.openshift.io share. Source: openshift/api operator/v1 of release 4.10. */
import type { DeclaredField, DeclaredType } from './declare.ts';

export type Fields = Readonly<Record<string, DeclaredField>>;

export const OPERATOR_SPEC: Fields = {
  managementState: ['string', 'Managed, Unmanaged, Force or Removed. Default Managed.'],
  logLevel: ['string', 'Verbosity of the component: Normal, Debug, Trace or TraceAll.'],
  operatorLogLevel: ['string', 'Verbosity of the controller of the component: Normal, Debug, Trace or TraceAll.'],
  unsupportedConfigOverrides: ['any', 'Settings that are merged into the configuration of the component.'],
  observedConfig: ['any', 'Settings that the cluster has derived; written by the controller.'],
};

export const OPERATOR_STATUS: Fields = {
  observedGeneration: ['int64', 'Generation of the spec that was seen last.'],
  conditions: ['[]#OperatorCondition', 'Available, Progressing, Degraded and their parts.'],
  version: ['string', 'The version that is reached.'],
  readyReplicas: ['int32', 'Number of instances that are ready and in the desired state.'],
  generations: ['[]#GenerationStatus', 'Generations of the objects that the controller has made.'],
};

const STATIC_POD_SPEC: Fields = {
  ...OPERATOR_SPEC,
  forceRedeploymentReason: ['string', 'Any other value than the one before makes a new revision.'],
  failedRevisionLimit: ['int32', 'Number of failed revisions that are kept. -1: all; 0 or absent: 5.'],
  succeededRevisionLimit: ['int32', 'Number of successful revisions that are kept. -1: all; 0 or absent: 5.'],
};

const STATIC_POD_STATUS: Fields = {
  ...OPERATOR_STATUS,
  latestAvailableRevision: ['int32', 'The newest revision.'],
  latestAvailableRevisionReason: ['string', 'Why the newest revision was made.'],
  nodeStatuses: ['[]#NodeStatus', 'The revisions of each master.'],
};

export const operatorKind = (
  name: string,
  about: string,
  spec: Fields = OPERATOR_SPEC,
  status: Fields = OPERATOR_STATUS,
): Record<string, DeclaredType> => ({
  [name]: {
    isKind: true,
    about,
    fields: { spec: [`!#${name}Spec`, 'Desired state.'], status: [`#${name}Status`, 'Observed state.'] },
  },
  [`${name}Spec`]: { about: `${name}Spec is the desired state.`, fields: spec },
  [`${name}Status`]: { about: `${name}Status is the observed state.`, fields: status },
});

export const staticPodKind = (name: string, about: string, more: Fields = {}): Record<string, DeclaredType> =>
  operatorKind(name, about, { ...STATIC_POD_SPEC, ...more }, STATIC_POD_STATUS);

export const sharedOperatorTypes: Readonly<Record<string, DeclaredType>> = {
  OperatorCondition: {
    about: 'OperatorCondition is one aspect of the state.',
    fields: {
      type: ['!string', 'The aspect.'],
      status: ['!string', 'True, False or Unknown.'],
      lastTransitionTime: ['date-time', 'When the status changed last.'],
      reason: ['string', 'Why, as one CamelCase word.'],
      message: ['string', 'Why, for people.'],
    },
  },
  GenerationStatus: {
    about: 'GenerationStatus is the last generation of an object that the controller has made.',
    fields: {
      group: ['!string', 'Group of the object.'],
      resource: ['!string', 'Resource of the object.'],
      namespace: ['!string', 'Namespace of the object.'],
      name: ['!string', 'Name of the object.'],
      lastGeneration: ['!int64', 'The generation.'],
      hash: ['!string', 'Digest of an object without generations.'],
    },
  },
  NodeStatus: {
    about: 'NodeStatus holds the revisions of one master.',
    fields: {
      nodeName: ['!string', 'The node.'],
      currentRevision: ['int32', 'The revision that the node runs.'],
      targetRevision: ['int32', 'The revision that is being installed; 0: none.'],
      lastFailedRevision: ['int32', 'The revision that failed last.'],
      lastFailedTime: ['date-time', 'When it failed.'],
      lastFailedReason: ['string', 'Why, as one CamelCase word.'],
      lastFailedCount: ['int32', 'Number of failed installations of the revision.'],
      lastFallbackCount: [
        'int32',
        'Number of times that the node returned to an older revision because of this revision.',
      ],
      lastFailedRevisionErrors: ['[]string', 'Errors of the failed revision.'],
    },
  },
  NodePlacement: {
    about: 'NodePlacement selects nodes.',
    fields: {
      nodeSelector: ['{}string', 'Labels of the nodes.'],
      tolerations: ['[]#core.Toleration', 'Taints that are tolerated.'],
    },
  },
};
