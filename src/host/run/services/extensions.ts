/**
 * Services for optional functions that upstream's components do not have. Fields of the bootstrap file configure them.
 * They stop together, while the API server of this host still answers.
 */
import { messageOf } from '../../../base/errors.ts';
import { alertTargets } from '../../alerts/alerts.ts';
import { watchBootstrap } from '../../config/pending-restart.ts';
import { serveControl } from '../../control/control.ts';
import { controlHandlers } from '../../control/control-handlers.ts';
import { startRouter } from '../../network/router.ts';
import { startImageWork } from '../../node/image-drops.ts';
import { keepLocalVolumes } from '../../node/local-volumes.ts';
import { publishImages } from '../../node/published-images.ts';
import { startClusterOperators } from '../../openshift/cluster-operators.ts';
import { followProfile } from '../../openshift/cluster-profile.ts';
import { startMachineConfig } from '../../openshift/machine-config-daemon.ts';
import { startMachineConfigServer } from '../../openshift/machine-config-server.ts';
import { deployManifests } from '../../openshift/manifests.ts';
import { releaseVerifier } from '../../openshift/release-trust.ts';
import { startUpdates } from '../../openshift/updates.ts';
import { type HostService, hostService } from './values.ts';

const STOP_MS = 3_000;
const stopsWith = 'sharedAddress';

export const extensions: readonly HostService[] = [
  hostService({
    name: 'localVolumes',
    needs: ['settings', 'nodeConfig', 'informers', 'api', 'kubelet'],
    start: ({ settings, nodeConfig, informers, api }, { log }) =>
      keepLocalVolumes(settings.paths, nodeConfig.nodeName, informers, api.client, log),
  }),
  hostService({
    name: 'publishedImages',
    needs: ['runtime', 'nodeConfig', 'informers', 'api', 'kubelet'],
    start: ({ runtime, nodeConfig, informers, api }, { log }) =>
      publishImages(runtime.images, nodeConfig.nodeName, informers, api.client, log),
  }),
  hostService({
    name: 'imageWork',
    needs: ['settings', 'runtime', 'nodeConfig', 'recorder', 'kubelet'],
    start: ({ settings, runtime, nodeConfig, recorder }, { log }) => {
      const { nodeName } = nodeConfig;
      return startImageWork({ settings, images: runtime.images, nodeName, recorder, log: log.named('images') });
    },
    stop: (stop) => stop(),
    stopsWith,
    stopMs: STOP_MS,
  }),
  hostService({
    name: 'machineConfigServer',
    needs: ['settings', 'api', 'kubelet'],
    start: ({ settings, api }, { log }) =>
      startMachineConfigServer(settings, api.client, log.named('machine-config-server')),
    stop: (stop) => stop(),
    stopsWith,
    stopMs: STOP_MS,
  }),
  hostService({
    name: 'manifests',
    needs: ['settings', 'kubelet'],
    start: ({ settings }, { log }) =>
      deployManifests(settings, log.named('manifests')).catch((error: unknown) => {
        log.error('deploy directory not watched', { error: messageOf(error) });
        return async () => {};
      }),
    stop: (stop) => stop(),
    stopsWith,
    stopMs: STOP_MS,
  }),
  hostService({
    name: 'revisionReports',
    needs: ['revisions', 'kubelet'],
    start: ({ revisions, kubelet }) => revisions.start(kubelet),
    stop: (stop) => stop(),
    stopsWith,
    stopMs: STOP_MS,
  }),
  hostService({
    name: 'machineConfig',
    needs: ['settings', 'nodeConfig', 'informers', 'api', 'recorder', 'runtime', 'kubelet'],
    start: ({ settings, nodeConfig, informers, api, recorder, runtime, kubelet }, { log }) =>
      startMachineConfig({
        settings,
        nodeName: nodeConfig.nodeName,
        informers,
        client: api.client,
        recorder,
        images: runtime.images,
        restartKubelet: () => kubelet.restart(),
        log: log.named('machine-config'),
      }),
    stop: (daemon) => daemon.stop(),
    stopsWith,
    stopMs: STOP_MS,
  }),
  hostService({
    name: 'profile',
    needs: ['settings', 'informers', 'kubelet'],
    start: ({ settings, informers, kubelet }, { log }) =>
      followProfile({ settings, informers, restartKubelet: () => kubelet.restart(), log: log.named('profile') }),
  }),
  hostService({
    name: 'releaseKeys',
    needs: ['settings', 'informers', 'kubelet'],
    start: ({ settings, informers }, { log }) => releaseVerifier(settings, informers, log.named('updates')),
  }),
  hostService({
    name: 'clusterOperators',
    needs: [
      ...(['settings', 'cgroups', 'cgroupDriver', 'runtime', 'restorer', 'nodeConfig'] as const),
      ...(['api', 'informers', 'releaseKeys', 'kubelet'] as const),
    ],
    start: (parts, { log }) =>
      startClusterOperators({
        settings: parts.settings,
        cgroups: parts.cgroups,
        driver: parts.cgroupDriver,
        ownBridge: parts.runtime.network.setMtu !== undefined,
        networkProblem: () => parts.restorer.problem() ?? parts.restorer.filterProblem() ?? parts.restorer.forwarding(),
        nodeName: parts.nodeConfig.nodeName,
        api: parts.api,
        informers: parts.informers,
        verify: parts.releaseKeys,
        log,
      }),
    stop: (operators) => operators.stop(),
    stopsWith,
    stopMs: STOP_MS,
  }),
  hostService({
    name: 'updates',
    needs: ['settings', 'runtime', 'nodeConfig', 'api', 'informers', 'releaseKeys', 'clusterOperators'],
    start: ({ settings, runtime, nodeConfig, api, informers, releaseKeys, clusterOperators }, { log }) =>
      startUpdates({
        settings,
        runtime,
        nodeName: nodeConfig.nodeName,
        api,
        informers,
        verify: releaseKeys,
        prober: clusterOperators.prober,
        log,
      }),
    stop: (stop) => stop(),
    stopsWith,
    stopMs: STOP_MS,
  }),
  hostService({
    name: 'router',
    needs: ['settings', 'informers', 'recorder', 'networkServices'],
    start: ({ settings, informers, recorder }, { log }) =>
      startRouter(settings, informers, recorder, log.named('router')),
    stop: (stop) => stop(),
    stopsWith,
  }),
  hostService({
    name: 'alertRounds',
    needs: ['settings', 'alerts', 'logForwarding', 'kubelet'],
    start: ({ settings, alerts, logForwarding }) => {
      alerts.engine.start(alertTargets(settings, () => logForwarding.metrics()));
      return alerts;
    },
    stop: ({ engine }) => engine.stop(),
    stopsWith,
    stopMs: STOP_MS,
  }),
  hostService({
    name: 'control',
    needs: [
      ...(['settings', 'ownAddress', 'runtime', 'kubelet', 'cgroupDriver', 'api', 'versions'] as const),
      ...(['snapshots', 'submittedPods', 'revisions', 'networkServices', 'alertRounds'] as const),
    ],
    // The control socket answers while the pods end.
    stopsWith: 'api',
    start: async (parts, { startedAt, stages, log }) => {
      let endPods = false;
      const handlers = controlHandlers({
        settings: parts.ownAddress.settings,
        runtime: parts.runtime,
        kubelet: parts.kubelet,
        startedAt,
        stages,
        driver: parts.cgroupDriver.name,
        client: parts.api.client,
        versions: () => parts.versions.report(),
        snapshots: parts.snapshots,
        endPods: () => {
          endPods = true;
        },
        submitted: parts.submittedPods,
        revisions: parts.revisions,
        alerts: parts.alertRounds,
        pendingRestart: await watchBootstrap(parts.settings.bootstrapFile),
      });
      const server = await serveControl(parts.settings.paths.controlSocket, handlers, log.named('control'));
      return { ...server, endsPods: () => endPods };
    },
    stop: (control) => control.stop(),
  }),
];
