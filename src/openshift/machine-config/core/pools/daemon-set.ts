/**
 * The DaemonSet `machine-config-daemon`. The daemon itself is part of the host process. Tools of OpenShift expect its
 * log in a pod, and the host's files below `/rootfs`, so a pod on each node provides both. The pod runs one idle `tail`
 * process. Source: manifests/machineconfigdaemon of openshift/machine-config-operator 4.10.
 */
import type { DaemonSet } from '../../../../api/generated/apps/v1.ts';
import { HOST_ROOT_IMAGE } from '../../../../api/podspec/host-root-image.ts';

export const DAEMON_NAMESPACE = 'openshift-machine-config-operator';
export const DAEMON = 'machine-config-daemon';
/** Name of the log file in the run directory of a host. */
export const DAEMON_LOG = 'machine-config-daemon.log';

const LABELS = { 'k8s-app': DAEMON };
const ROOT = '/rootfs';
const SCRIPT =
  `echo '${DAEMON} is part of the host process: journalctl -u hyperedge'; ` +
  `exec tail -n +1 -F ${ROOT}/run/hyperedge/${DAEMON_LOG} 2>/dev/null`;

export const machineConfigDaemonSet: DaemonSet = {
  apiVersion: 'apps/v1',
  kind: 'DaemonSet',
  metadata: { name: DAEMON, namespace: DAEMON_NAMESPACE },
  spec: {
    selector: { matchLabels: LABELS },
    updateStrategy: { type: 'RollingUpdate', rollingUpdate: { maxUnavailable: '10%' } },
    template: {
      metadata: { labels: LABELS },
      spec: {
        serviceAccountName: DAEMON,
        automountServiceAccountToken: false,
        enableServiceLinks: false,
        hostNetwork: true,
        hostPID: true,
        priorityClassName: 'system-node-critical',
        nodeSelector: { 'kubernetes.io/os': 'linux' },
        tolerations: [{ operator: 'Exists' }],
        terminationGracePeriodSeconds: 2,
        containers: [
          {
            name: DAEMON,
            image: HOST_ROOT_IMAGE,
            imagePullPolicy: 'Never',
            command: ['/bin/sh', '-c', SCRIPT],
            resources: { requests: { cpu: '1m', memory: '1Mi' } },
            securityContext: { privileged: true, readOnlyRootFilesystem: true },
            volumeMounts: [{ name: 'rootfs', mountPath: ROOT, mountPropagation: 'HostToContainer' }],
          },
        ],
        volumes: [{ name: 'rootfs', hostPath: { path: '/' } }],
      },
    },
  },
};

/**
 * Whether `stored` has each field of `wanted` with the same value. More fields are allowed, but not more list elements.
 */
export function hasFields(stored: unknown, wanted: unknown): boolean {
  if (typeof wanted !== 'object' || wanted === null) return stored === wanted;
  if (typeof stored !== 'object' || stored === null) return false;
  if (Array.isArray(wanted) && (!Array.isArray(stored) || stored.length !== wanted.length)) return false;
  const known = new Map(Object.entries(stored));
  return Object.entries(wanted).every(([key, value]) => hasFields(known.get(key), value));
}
