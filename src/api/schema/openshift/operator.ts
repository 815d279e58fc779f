/**
 * operator.openshift.io/v1. Source: openshift/api operator/v1 of release 4.10; MachineConfiguration of release 4.17.
 */
import { declarePackage } from './declare.ts';
import { machineConfigurationTypes } from './operator-machine-configuration.ts';
import { networkTypes } from './operator-network.ts';
import { OPERATOR_STATUS, operatorKind, sharedOperatorTypes, staticPodKind } from './operator-shared.ts';

export const operatorPackage = declarePackage('operator.v1', {
  ...sharedOperatorTypes,
  ...staticPodKind('Etcd', 'Etcd configures the store members of the masters.'),
  ...staticPodKind('KubeAPIServer', 'KubeAPIServer configures the API servers of the masters.'),
  ...staticPodKind('KubeControllerManager', 'KubeControllerManager configures the controllers of the masters.', {
    useMoreSecureServiceCA: ['boolean', 'Service accounts get the authority of services alone.'],
  }),
  ...staticPodKind('KubeScheduler', 'KubeScheduler configures the schedulers of the masters.'),
  ...machineConfigurationTypes,
  ...networkTypes,
  ...operatorKind('Authentication', 'Authentication is the login of the cluster.', undefined, {
    ...OPERATOR_STATUS,
    oauthAPIServer: ['#OAuthAPIServerStatus', 'The server of OAuth objects.'],
  }),
  OAuthAPIServerStatus: {
    about: 'OAuthAPIServerStatus is the state of the server of OAuth objects.',
    fields: { latestAvailableRevision: ['int32', 'Newest revision of the OAuth API server.'] },
  },
  ...operatorKind('Config', 'Config is the configuration of the cluster.'),
  ...operatorKind('Storage', 'Storage is the storage of the cluster.'),
});
