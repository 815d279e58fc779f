/** machineconfiguration.openshift.io/v1. Source: openshift/api machineconfiguration/v1 of release 4.10. */
import { type DeclaredField, type DeclaredType, declarePackage } from './declare.ts';

type Fields = Readonly<Record<string, DeclaredField>>;

const kind = (name: string, about: string, spec: Fields, status: Fields | undefined): Record<string, DeclaredType> => ({
  [name]: {
    isKind: true,
    about,
    fields: {
      spec: [`#${name}Spec`, 'Desired configuration.'],
      ...(status === undefined ? {} : { status: [`#${name}Status`, 'Observed state.'] as DeclaredField }),
    },
  },
  [`${name}Spec`]: { about: `${name}Spec is the desired configuration.`, fields: spec },
  ...(status === undefined
    ? {}
    : { [`${name}Status`]: { about: `${name}Status is the observed state.`, fields: status } }),
});

const OBSERVED: DeclaredField = ['int64', 'Generation of the object that the controller has observed.'];

const condition = (types: string): Fields => ({
  type: ['string', types],
  status: ['string', 'True, False or Unknown.'],
  lastTransitionTime: ['date-time', 'When the status changed last.'],
  reason: ['string', 'One word for programs.'],
  message: ['string', 'Text for people.'],
});

const POOL_SELECTOR: DeclaredField = ['#meta.LabelSelector', 'Labels of the pools; an empty selector selects none.'];

export const machineConfigurationPackage = declarePackage('machineconfiguration.v1', {
  ...kind(
    'MachineConfig',
    'MachineConfig is a fragment of the configuration of hosts, or the rendered configuration of a pool.',
    {
      osImageURL: ['string', 'Release of the host.'],
      config: ['any', 'Ignition configuration: files, units and SSH keys.'],
      kernelArguments: ['[]string', 'Arguments that are added to the kernel command line.'],
      extensions: ['[]string', 'Additional features of the host.'],
      fips: ['boolean', 'FIPS mode.'],
      kernelType: ['string', 'default or realtime.'],
    },
    undefined,
  ),
  ...kind(
    'MachineConfigPool',
    'MachineConfigPool is a set of nodes with the same configuration.',
    {
      machineConfigSelector: ['#meta.LabelSelector', 'Labels of the fragments; an empty selector selects none.'],
      nodeSelector: ['#meta.LabelSelector', 'Labels of the nodes; an empty selector selects none.'],
      paused: ['boolean', 'Nodes get no new configuration while it is set.'],
      maxUnavailable: [
        'int-or-string',
        'Number or percentage of nodes of the pool that may be unavailable during an update. Default: 1.',
      ],
      configuration: ['#MachineConfigPoolStatusConfiguration', 'Rendered configuration that is desired for the nodes.'],
    },
    {
      observedGeneration: OBSERVED,
      configuration: ['#MachineConfigPoolStatusConfiguration', 'Rendered configuration that all nodes have had last.'],
      machineCount: ['int32', 'Nodes of the pool.'],
      updatedMachineCount: ['int32', 'Nodes with the configuration of the spec.'],
      readyMachineCount: ['int32', 'Updated nodes that are ready.'],
      unavailableMachineCount: ['int32', 'Nodes that are not ready or are being updated.'],
      degradedMachineCount: ['int32', 'Nodes that are degraded or unreconcilable.'],
      conditions: ['[]#MachineConfigPoolCondition', 'Conditions of the pool.'],
    },
  ),
  MachineConfigPoolStatusConfiguration: {
    about: 'MachineConfigPoolStatusConfiguration refers to a rendered configuration and its fragments.',
    fields: {
      kind: ['string', 'Kind of the object.'],
      namespace: ['string', 'Namespace of the object.'],
      name: ['string', 'Name of the rendered MachineConfig.'],
      uid: ['string', 'UID of the object.'],
      apiVersion: ['string', 'API version of the object.'],
      resourceVersion: ['string', 'Resource version of the object.'],
      fieldPath: ['string', 'Part of the object.'],
      source: ['[]#core.ObjectReference', 'The MachineConfigs that it was rendered from, in order.'],
    },
  },
  MachineConfigPoolCondition: {
    about: 'MachineConfigPoolCondition is one aspect of the state of a pool.',
    fields: condition('Updated, Updating, NodeDegraded, RenderDegraded or Degraded.'),
  },
  ...kind(
    'KubeletConfig',
    'KubeletConfig configures the kubelets of pools.',
    {
      autoSizingReserved: ['boolean', 'Reservations for the system follow the size of the host.'],
      logLevel: ['int32', 'Verbosity of the kubelet, 1 to 10.'],
      machineConfigPoolSelector: POOL_SELECTOR,
      kubeletConfig: ['any', 'Fields of a KubeletConfiguration of kubelet.config.k8s.io/v1beta1.'],
      tlsSecurityProfile: ['#config.TLSSecurityProfile', 'TLS versions and ciphers of the kubelet.'],
    },
    { observedGeneration: OBSERVED, conditions: ['[]#KubeletConfigCondition', 'The last three results.'] },
  ),
  KubeletConfigCondition: {
    about: 'KubeletConfigCondition is the result of one attempt.',
    fields: condition('Success or Failure.'),
  },
  ...kind(
    'ContainerRuntimeConfig',
    'ContainerRuntimeConfig configures the container runtime of pools.',
    {
      machineConfigPoolSelector: POOL_SELECTOR,
      containerRuntimeConfig: ['#ContainerRuntimeConfiguration', 'Settings of the container runtime.'],
    },
    { observedGeneration: OBSERVED, conditions: ['[]#ContainerRuntimeConfigCondition', 'The last three results.'] },
  ),
  ContainerRuntimeConfiguration: {
    about: 'ContainerRuntimeConfiguration holds settings of the container runtime.',
    fields: {
      pidsLimit: ['int64', 'Processes of a container at most.'],
      logLevel: ['string', 'fatal, panic, error, warn, info or debug.'],
      logSizeMax: ['quantity', 'Size of the log file of a container at most.'],
      overlaySize: ['quantity', 'Size of the writable layer of a container at most.'],
    },
  },
  ContainerRuntimeConfigCondition: {
    about: 'ContainerRuntimeConfigCondition is the result of one attempt.',
    fields: condition('Success or Failure.'),
  },
  ...kind(
    'ControllerConfig',
    'ControllerConfig holds facts of the cluster from which the configuration of hosts is made.',
    {
      clusterDNSIP: ['!string', 'Address of the cluster DNS.'],
      cloudProviderConfig: ['!string', 'Configuration of the cloud provider.'],
      platform: ['string', 'Deprecated: use infra.'],
      etcdDiscoveryDomain: ['string', 'Deprecated: use infra.'],
      kubeAPIServerServingCAData: ['!byte', 'Authorities of the API server.'],
      rootCAData: ['!byte', 'Root authorities.'],
      cloudProviderCAData: ['byte', 'Authorities of the cloud provider.'],
      additionalTrustBundle: ['byte', 'Further authorities that hosts trust.'],
      pullSecret: ['#core.ObjectReference', 'Secret with credentials of registries.'],
      images: ['!{}string', 'Images of components.'],
      osImageURL: ['!string', 'Release of the hosts.'],
      releaseImage: ['!string', 'Release of the cluster.'],
      proxy: ['any', 'Status of the Proxy of the cluster.'],
      infra: ['any', 'Infrastructure of the cluster.'],
      dns: ['any', 'DNS of the cluster.'],
      ipFamilies: ['!string', 'IPv4, IPv6 or DualStack.'],
      networkType: ['string', 'Name of the network.'],
      network: ['any', 'Changes of the network that are under way.'],
    },
    {
      observedGeneration: OBSERVED,
      conditions: ['[]#ControllerConfigStatusCondition', 'Conditions of the template controller.'],
    },
  ),
  ControllerConfigStatusCondition: {
    about: 'ControllerConfigStatusCondition is one aspect of the state.',
    fields: condition('TemplateControllerRunning, TemplateControllerCompleted or TemplateControllerFailing.'),
  },
});
