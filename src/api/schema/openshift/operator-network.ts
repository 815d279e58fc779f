/** Network, DNS and IngressController of operator.openshift.io. Source: openshift/api operator/v1 of release 4.10. */
import type { DeclaredType } from './declare.ts';
import { OPERATOR_SPEC, operatorKind } from './operator-shared.ts';

export const networkTypes: Readonly<Record<string, DeclaredType>> = {
  ...operatorKind('Network', 'Network is the network of pods and services.', {
    ...OPERATOR_SPEC,
    clusterNetwork: ['[]#ClusterNetworkEntry', 'Ranges of pods.'],
    serviceNetwork: ['[]string', 'Ranges of services.'],
    defaultNetwork: ['#DefaultNetworkDefinition', 'The network of all pods.'],
    additionalNetworks: ['[]any', 'Further networks.'],
    disableMultiNetwork: ['boolean', 'Pods have one network only.'],
    useMultiNetworkPolicy: ['boolean', 'Policies of further networks.'],
    deployKubeProxy: ['boolean', 'Whether a separate service proxy runs.'],
    disableNetworkDiagnostics: ['boolean', 'No checks of connections.'],
    kubeProxyConfig: ['any', 'Settings of the service proxy.'],
    exportNetworkFlows: ['any', 'Collectors of flows.'],
    migration: ['any', 'A change of the plug-in.'],
  }),
  ClusterNetworkEntry: {
    about: 'ClusterNetworkEntry is a range of pods.',
    fields: { cidr: ['!string', 'The range.'], hostPrefix: ['int32', 'Length of the prefix that a node gets.'] },
  },
  DefaultNetworkDefinition: {
    about: 'DefaultNetworkDefinition is the network of all pods.',
    fields: {
      type: ['!string', 'The plug-in.'],
      openshiftSDNConfig: ['any', 'Settings for OpenShift SDN.'],
      ovnKubernetesConfig: ['any', 'Settings for OVN-Kubernetes.'],
      kuryrConfig: ['any', 'Settings for Kuryr.'],
    },
  },
  ...operatorKind(
    'DNS',
    'DNS is the DNS server of the cluster.',
    {
      servers: ['[]#Server', 'Name servers of domains.'],
      upstreamResolvers: ['#UpstreamResolvers', 'Name servers of all other names.'],
      nodePlacement: ['#NodePlacement', 'Nodes of the DNS server.'],
      managementState: ['string', 'Managed or Unmanaged.'],
      operatorLogLevel: ['string', 'Verbosity of the controller.'],
      logLevel: ['string', 'Verbosity of the server.'],
    },
    {
      clusterIP: ['string', 'Address of the DNS service.'],
      clusterDomain: ['string', 'Domain of the names of services.'],
      conditions: ['[]#OperatorCondition', 'The state.'],
    },
  ),
  Server: {
    about: 'Server forwards queries of domains.',
    fields: {
      name: ['!string', 'Name of the entry.'],
      zones: ['![]string', 'The domains.'],
      forwardPlugin: ['!#ForwardPlugin', 'Servers to which queries are forwarded.'],
    },
  },
  ForwardPlugin: {
    about: 'ForwardPlugin lists name servers.',
    fields: { upstreams: ['![]string', 'Addresses with optional ports.'], policy: ['string', 'Random, RoundRobin …'] },
  },
  UpstreamResolvers: {
    about: 'UpstreamResolvers are the name servers of all other names.',
    fields: { upstreams: ['[]#Upstream', 'The servers.'], policy: ['string', 'Sequential, Random or RoundRobin.'] },
  },
  Upstream: {
    about: 'Upstream is a name server.',
    fields: {
      type: ['!string', 'SystemResolvConf or Network.'],
      address: ['string', 'Address of the upstream.'],
      port: ['int32', 'Port of the upstream.'],
    },
  },
  ...operatorKind(
    'IngressController',
    'IngressController is the router of a domain.',
    {
      domain: ['string', 'Domain of the routes.'],
      replicas: ['int32', 'Desired number of routers.'],
      httpErrorCodePages: ['any', 'Pages of errors.'],
      endpointPublishingStrategy: ['#EndpointPublishingStrategy', 'Way in which the routers are reached.'],
      defaultCertificate: ['#core.LocalObjectReference', 'Secret with the certificate of routes that have none.'],
      namespaceSelector: ['#meta.LabelSelector', 'Namespaces of the routes.'],
      routeSelector: ['#meta.LabelSelector', 'Labels of the routes.'],
      nodePlacement: ['#NodePlacement', 'Nodes of the routers.'],
      tlsSecurityProfile: ['any', 'TLS versions and ciphers.'],
      clientTLS: ['any', 'Certificates of clients.'],
      routeAdmission: ['any', 'Routes that are admitted.'],
      logging: ['any', 'Access logs.'],
      httpHeaders: ['any', 'Changes of headers.'],
      httpEmptyRequestsPolicy: ['string', 'Respond or Ignore.'],
      tuningOptions: ['any', 'Buffers and times.'],
      unsupportedConfigOverrides: ['any', 'Further settings.'],
    },
    {
      availableReplicas: ['int32', 'Number of routers that respond.'],
      selector: ['string', 'Labels of the routers.'],
      domain: ['string', 'Domain of the routes.'],
      endpointPublishingStrategy: ['#EndpointPublishingStrategy', 'Way in which the routers are reached.'],
      conditions: ['[]#OperatorCondition', 'The state.'],
      tlsProfile: ['any', 'TLS versions and ciphers in force.'],
      observedGeneration: ['int64', 'Generation of the spec that was seen last.'],
    },
  ),
  EndpointPublishingStrategy: {
    about: 'EndpointPublishingStrategy is how routers are reached.',
    fields: {
      type: ['!string', 'HostNetwork, LoadBalancerService, NodePortService or Private.'],
      loadBalancer: ['any', 'Settings for type LoadBalancerService.'],
      hostNetwork: ['any', 'Settings for type HostNetwork.'],
      private: ['any', 'Settings for type Private.'],
      nodePort: ['any', 'Settings for type NodePortService.'],
    },
  },
};
