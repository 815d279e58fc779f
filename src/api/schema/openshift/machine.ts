/** machine.openshift.io/v1beta1. Source: openshift/api machine/v1beta1 of release 4.10. */
import { type DeclaredField, type DeclaredType, declarePackage } from './declare.ts';

const LABELS: DeclaredField = ['{}string', 'Labels.'];
const ANNOTATIONS: DeclaredField = ['{}string', 'Annotations.'];

const machineTypes: Readonly<Record<string, DeclaredType>> = {
  Machine: {
    isKind: true,
    about: 'Machine is a host of the cluster: a BareMetalHost that it has claimed, and the Node that runs there.',
    fields: {
      spec: ['#MachineSpec', 'Desired state of the machine.'],
      status: ['#MachineStatus', 'Observed state of the machine.'],
    },
  },
  MachineSpec: {
    about: 'MachineSpec is the desired state of a machine.',
    fields: {
      metadata: ['#MachineObjectMeta', 'Labels and annotations that the Node gets.'],
      lifecycleHooks: ['#LifecycleHooks', 'Components that hold the deletion of the machine.'],
      taints: ['[]#core.Taint', 'Taints that the Node gets.'],
      providerSpec: ['#ProviderSpec', 'Host that the machine claims, and its installation.'],
      providerID: ['string', 'Identity of the host, as in the Node; set when a host is claimed.'],
    },
  },
  MachineObjectMeta: {
    about: 'MachineObjectMeta is the part of the metadata that is copied.',
    fields: {
      name: ['string', 'Not used.'],
      generateName: ['string', 'Not used.'],
      namespace: ['string', 'Not used.'],
      labels: LABELS,
      annotations: ANNOTATIONS,
      ownerReferences: ['[]#meta.OwnerReference', 'Not used.'],
    },
  },
  LifecycleHooks: {
    about: 'LifecycleHooks hold the deletion of a machine until their owners remove them.',
    fields: {
      preDrain: ['[]#LifecycleHook', 'Before the Node is drained.'],
      preTerminate: ['[]#LifecycleHook', 'After the drain, before the host is wiped.'],
    },
  },
  LifecycleHook: {
    about: 'LifecycleHook is one reason to wait.',
    fields: {
      name: ['!string', 'Name of the hook, unique in its list, such as example.com/Backup.'],
      owner: ['!string', 'Component that removes the hook.'],
    },
  },
  ProviderSpec: {
    about: 'ProviderSpec holds the part that the provider of hosts defines.',
    fields: { value: ['any', 'A BareMetalMachineProviderSpec of hyperedge.dev/v1.'] },
  },
  MachineStatus: {
    about: 'MachineStatus is what a machine is.',
    fields: {
      nodeRef: ['#core.ObjectReference', 'The Node that runs on the host.'],
      lastUpdated: ['date-time', 'When the status changed last.'],
      errorReason: ['string', 'Why the machine has failed, in a word.'],
      errorMessage: ['string', 'Why the machine has failed.'],
      providerStatus: ['any', 'The claimed host.'],
      addresses: ['[]#core.NodeAddress', 'Addresses of the host.'],
      lastOperation: ['#LastOperation', 'Last operation.'],
      phase: ['string', 'Provisioning, Provisioned, Running, Deleting or Failed.'],
      conditions: ['[]#Condition', 'Drainable, Drained, Terminable and InstanceExists.'],
    },
  },
  LastOperation: {
    about: 'LastOperation is what a controller did last.',
    fields: {
      description: ['string', 'Description of the operation.'],
      lastUpdated: ['date-time', 'When.'],
      state: ['string', 'State of the operation.'],
      type: ['string', 'Type of the operation.'],
    },
  },
  Condition: {
    about: 'Condition is one observation.',
    fields: {
      type: ['!string', 'Type of the condition.'],
      status: ['!string', 'True, False or Unknown.'],
      severity: ['string', 'Error, Warning or Info, where the status is not the wanted one.'],
      lastTransitionTime: ['date-time', 'When the status changed last.'],
      reason: ['string', 'Why, in a word.'],
      message: ['string', 'Why.'],
    },
  },
};

const setTypes: Readonly<Record<string, DeclaredType>> = {
  MachineSet: {
    isKind: true,
    about: 'MachineSet keeps a number of machines that are made by one template.',
    fields: {
      spec: ['#MachineSetSpec', 'Number and template of the machines.'],
      status: ['#MachineSetStatus', 'Number of machines.'],
    },
  },
  MachineSetSpec: {
    about: 'MachineSetSpec is the desired state of a set.',
    fields: {
      replicas: ['int32', 'Number of machines; default 1.'],
      minReadySeconds: ['int32', 'Seconds for which a Node must be Ready before its machine is available.'],
      deletePolicy: ['string', 'Machines that are deleted first: Random, Newest or Oldest; default Random.'],
      selector: ['#meta.LabelSelector', 'Machines of the set.'],
      template: ['#MachineTemplateSpec', 'Template of the machines.'],
    },
  },
  MachineTemplateSpec: {
    about: 'MachineTemplateSpec is what machines are made by.',
    fields: {
      metadata: ['#MachineObjectMeta', 'Labels and annotations of the machines.'],
      spec: ['#MachineSpec', 'Desired state of the machines.'],
    },
  },
  MachineSetStatus: {
    about: 'MachineSetStatus counts machines.',
    fields: {
      replicas: ['int32', 'Machines that there are.'],
      fullyLabeledReplicas: ['int32', 'Machines with all labels of the template.'],
      readyReplicas: ['int32', 'Machines whose Node is Ready.'],
      availableReplicas: ['int32', 'Machines whose Node has been Ready for minReadySeconds.'],
      observedGeneration: ['int64', 'Generation that the controller has seen.'],
      errorReason: ['string', 'Why machines cannot be made, in a word.'],
      errorMessage: ['string', 'Why machines cannot be made.'],
    },
  },
};

const healthCheckTypes: Readonly<Record<string, DeclaredType>> = {
  MachineHealthCheck: {
    isKind: true,
    about: 'MachineHealthCheck deletes machines whose Nodes are not healthy, so that their sets replace them.',
    fields: {
      spec: ['#MachineHealthCheckSpec', 'Machines that are watched, and conditions that are unhealthy.'],
      status: ['#MachineHealthCheckStatus', 'How many machines are healthy.'],
    },
  },
  MachineHealthCheckSpec: {
    about: 'MachineHealthCheckSpec is what is watched, and what is unhealthy.',
    fields: {
      selector: ['!#meta.LabelSelector', 'Machines that are watched; an empty selector matches all.'],
      unhealthyConditions: ['![]#UnhealthyCondition', 'A Node with one of these conditions is unhealthy.'],
      maxUnhealthy: [
        'int-or-string',
        'No machine is deleted while more are unhealthy, a number or a percentage; default 100%.',
      ],
      nodeStartupTimeout: ['string', 'A machine without a Node is unhealthy after this time; 0 disables; default 10m.'],
      remediationTemplate: ['#core.ObjectReference', 'Refused: machines are remediated by deletion.'],
    },
  },
  UnhealthyCondition: {
    about: 'UnhealthyCondition is a condition of a Node that lasts.',
    fields: {
      type: ['!string', 'Type of the condition.'],
      status: ['!string', 'Status of the condition.'],
      timeout: ['!string', 'Duration of the condition after which the Node is unhealthy.'],
    },
  },
  MachineHealthCheckStatus: {
    about: 'MachineHealthCheckStatus counts machines.',
    fields: {
      expectedMachines: ['int32', 'Machines that are watched.'],
      currentHealthy: ['int32', 'Healthy ones.'],
      remediationsAllowed: ['int32', 'Further machines that may be remediated.'],
      conditions: ['[]#Condition', 'RemediationAllowed.'],
    },
  },
};

export const machinePackage = declarePackage('machine.v1beta1', {
  ...machineTypes,
  ...setTypes,
  ...healthCheckTypes,
});
