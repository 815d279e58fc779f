/**
 * Types of config.openshift.io/v1 about the cluster and its version. Source: openshift/api config/v1 of release 4.10.
 */
import type { DeclaredType } from './declare.ts';

const object = (about: string, spec: `#${string}`, status: `#${string}`): DeclaredType => ({
  isKind: true,
  about,
  fields: { spec: [`!${spec}`, 'Desired state.'], status: [status, 'Observed state.'] },
});

export const clusterTypes: Readonly<Record<string, DeclaredType>> = {
  ClusterOperator: object(
    'ClusterOperator is the state of one component of the cluster.',
    '#ClusterOperatorSpec',
    '#ClusterOperatorStatus',
  ),
  ClusterOperatorSpec: { about: 'ClusterOperatorSpec is empty.', fields: {} },
  ClusterOperatorStatus: {
    about: 'ClusterOperatorStatus is the state of the component.',
    fields: {
      conditions: ['[]#ClusterOperatorStatusCondition', 'Available, Progressing, Degraded, Upgradeable.'],
      versions: ['[]#OperandVersion', 'Versions of what the operator runs.'],
      relatedObjects: ['[]#ObjectReference', 'Objects that matter to the operator.'],
      extension: ['any', 'Further state of the operator, free-form.'],
    },
  },
  ClusterOperatorStatusCondition: {
    about: 'ClusterOperatorStatusCondition is one aspect of the state.',
    fields: {
      type: ['!string', 'The aspect.'],
      status: ['!string', 'True, False or Unknown.'],
      lastTransitionTime: ['!date-time', 'When the status changed last.'],
      reason: ['string', 'Why, as one CamelCase word.'],
      message: ['string', 'Why, for people.'],
    },
  },
  OperandVersion: {
    about: 'OperandVersion is the version of one operand.',
    fields: { name: ['!string', 'The operand.'], version: ['!string', 'Version of the operand.'] },
  },
  ObjectReference: {
    about: 'ObjectReference names objects that matter.',
    fields: {
      group: ['!string', 'Group of the objects.'],
      resource: ['!string', 'Resource of the objects.'],
      namespace: ['string', 'Their namespace.'],
      name: ['string', 'Name of one of them.'],
    },
  },
  ClusterVersion: object(
    'ClusterVersion is the version of the cluster, and the updates that it may have.',
    '#ClusterVersionSpec',
    '#ClusterVersionStatus',
  ),
  ClusterVersionSpec: {
    about: 'ClusterVersionSpec is the version that is wanted.',
    fields: {
      clusterID: ['!string', 'UUID of the cluster.'],
      desiredUpdate: ['#Update', 'The version to change to.'],
      upstream: ['string', 'URL of the source of updates.'],
      channel: ['string', 'Name of a stream of updates.'],
      capabilities: ['#ClusterVersionCapabilitiesSpec', 'Optional components.'],
      overrides: ['[]#ComponentOverride', 'Components that are not managed.'],
    },
  },
  ClusterVersionCapabilitiesSpec: {
    about: 'ClusterVersionCapabilitiesSpec selects optional components.',
    fields: {
      baselineCapabilitySet: ['string', 'None, vCurrent or a release.'],
      additionalEnabledCapabilities: ['[]string', 'More of them.'],
    },
  },
  ComponentOverride: {
    about: 'ComponentOverride takes a component out of management.',
    fields: {
      kind: ['!string', 'Kind of the object.'],
      group: ['!string', 'Group of the component.'],
      namespace: ['!string', 'Namespace of the component.'],
      name: ['!string', 'Name of the component.'],
      unmanaged: ['!boolean', 'True: the object is left alone.'],
    },
  },
  Update: {
    about: 'Update is a version to change to.',
    fields: {
      version: ['string', 'The version.'],
      image: ['string', 'Image of the release.'],
      force: ['boolean', 'Changes although the release cannot be verified.'],
    },
  },
  ClusterVersionStatus: {
    about: 'ClusterVersionStatus is the version that there is.',
    fields: {
      desired: ['#Release', 'The version that the cluster is or changes to.'],
      history: ['[]#UpdateHistory', 'The latest versions, the newest first.'],
      observedGeneration: ['int64', 'Generation of the spec that was seen.'],
      versionHash: ['string', 'Digest of the content.'],
      capabilities: ['#ClusterVersionCapabilitiesStatus', 'Optional components.'],
      conditions: ['[]#ClusterOperatorStatusCondition', 'Available, Progressing, Failing …'],
      availableUpdates: ['[]#Release', 'Releases to which the cluster can be updated.'],
      conditionalUpdates: ['[]#ConditionalUpdate', 'Releases to which the cluster can be updated, with known risks.'],
    },
  },
  ClusterVersionCapabilitiesStatus: {
    about: 'ClusterVersionCapabilitiesStatus lists optional components.',
    fields: {
      enabledCapabilities: ['[]string', 'Those that are there.'],
      knownCapabilities: ['[]string', 'All of them.'],
    },
  },
  Release: {
    about: 'Release is a version that can be run.',
    fields: {
      version: ['string', 'The version.'],
      image: ['string', 'Image of the release.'],
      url: ['string', 'URL of the description.'],
      channels: ['[]string', 'Channels that have it.'],
    },
  },
  UpdateHistory: {
    about: 'UpdateHistory is one change of the version.',
    fields: {
      state: ['!string', 'Completed or Partial.'],
      startedTime: ['!date-time', 'When it began.'],
      completionTime: ['date-time', 'When it ended; absent: it has not.'],
      version: ['string', 'The version.'],
      image: ['string', 'Image of the release.'],
      verified: ['!boolean', 'Whether it was verified.'],
      acceptedRisks: ['string', 'Risks that were accepted.'],
    },
  },
  ConditionalUpdate: {
    about: 'ConditionalUpdate is an update with known risks.',
    fields: {
      release: ['!#Release', 'The update.'],
      risks: ['[]#ConditionalUpdateRisk', 'Risks of the update.'],
      conditions: ['[]#meta.Condition', 'Whether it is recommended.'],
    },
  },
  ConditionalUpdateRisk: {
    about: 'ConditionalUpdateRisk is a known risk of an update.',
    fields: {
      url: ['!string', 'URL of the description.'],
      name: ['!string', 'Name of the risk.'],
      message: ['!string', 'Description.'],
      matchingRules: ['any', 'Clusters to which the risk applies.'],
    },
  },
  Infrastructure: object(
    'Infrastructure describes what the cluster runs on, and where its API is.',
    '#InfrastructureSpec',
    '#InfrastructureStatus',
  ),
  InfrastructureSpec: {
    about: 'InfrastructureSpec names the platform.',
    fields: {
      cloudConfig: ['#ConfigMapFileReference', 'Configuration of a cloud provider.'],
      platformSpec: ['#PlatformSpec', 'The platform.'],
    },
  },
  ConfigMapFileReference: {
    about: 'ConfigMapFileReference names a key of a config map in openshift-config.',
    fields: { name: ['!string', 'The config map.'], key: ['string', 'Key in the config map.'] },
  },
  PlatformSpec: {
    about: 'PlatformSpec is the platform that is wanted.',
    fields: {
      type: ['string', 'None, BareMetal …'],
      baremetal: ['any', 'Settings of bare metal.'],
    },
  },
  InfrastructureStatus: {
    about: 'InfrastructureStatus is the platform that there is.',
    fields: {
      infrastructureName: ['string', 'Name of the cluster for humans and clouds.'],
      platform: ['string', 'As platformStatus.type; deprecated.'],
      platformStatus: ['#PlatformStatus', 'The platform.'],
      etcdDiscoveryDomain: ['string', 'Deprecated.'],
      apiServerURL: ['string', 'URL of the API for users.'],
      apiServerInternalURI: ['string', 'URL of the API within the cluster.'],
      controlPlaneTopology: ['string', 'HighlyAvailable, SingleReplica or External.'],
      infrastructureTopology: ['string', 'HighlyAvailable or SingleReplica.'],
    },
  },
  PlatformStatus: {
    about: 'PlatformStatus is the platform with its details.',
    fields: {
      type: ['!string', 'None, BareMetal …'],
      baremetal: ['#BareMetalPlatformStatus', 'Settings for bare metal.'],
    },
  },
  BareMetalPlatformStatus: {
    about: 'BareMetalPlatformStatus holds the virtual addresses of a bare-metal cluster.',
    fields: {
      apiServerInternalIP: ['string', 'Address of the API.'],
      ingressIP: ['string', 'Address of the default ingress.'],
      nodeDNSIP: ['string', 'Deprecated.'],
    },
  },
  Network: object('Network is the network of the cluster.', '#NetworkSpec', '#NetworkStatus'),
  NetworkSpec: {
    about: 'NetworkSpec is the network that is wanted.',
    fields: {
      clusterNetwork: ['[]#ClusterNetworkEntry', 'Ranges of pods.'],
      serviceNetwork: ['[]string', 'Ranges of services.'],
      networkType: ['string', 'The plug-in.'],
      externalIP: ['#ExternalIPConfig', 'Rules for external addresses of services.'],
      serviceNodePortRange: ['string', 'Range of node ports.'],
    },
  },
  ClusterNetworkEntry: {
    about: 'ClusterNetworkEntry is a range of pods.',
    fields: { cidr: ['!string', 'The range.'], hostPrefix: ['int32', 'Length of the prefix that a node gets.'] },
  },
  ExternalIPConfig: {
    about: 'ExternalIPConfig rules external addresses.',
    fields: {
      policy: ['#ExternalIPPolicy', 'External IPs that may be set.'],
      autoAssignCIDRs: ['[]string', 'Ranges that are assigned from.'],
    },
  },
  ExternalIPPolicy: {
    about: 'ExternalIPPolicy restricts external addresses.',
    fields: {
      allowedCIDRs: ['[]string', 'Ranges that are allowed.'],
      rejectedCIDRs: ['[]string', 'Ranges that are not.'],
    },
  },
  NetworkStatus: {
    about: 'NetworkStatus is the network that there is.',
    fields: {
      clusterNetwork: ['[]#ClusterNetworkEntry', 'Ranges of pods.'],
      serviceNetwork: ['[]string', 'Ranges of services.'],
      networkType: ['string', 'The plug-in.'],
      clusterNetworkMTU: ['int32', 'Largest packet between pods.'],
      migration: ['any', 'A change of the plug-in that is under way.'],
    },
  },
};
