/** Ports of the components, checked before any is started. */
import type { Settings } from '../config/settings.ts';
import { checkPort } from './ports.ts';
import type { HostRuntime } from './runtime.ts';

/**
 * Skips components that still run from an earlier host process. Throws CodedError 'address-in-use' with the port and
 * its field.
 */
export async function checkPorts(settings: Settings, runtime: HostRuntime): Promise<void> {
  const running = new Set(
    (await runtime.runtime.listContainers())
      .filter((container) => container.state === 'running')
      .map((container) => `${container.labels['io.kubernetes.pod.namespace'] ?? ''}/${container.name}`),
  );
  const { ports, roles } = settings;
  const any = settings.nodeIp.includes(':') ? '::' : '0.0.0.0';
  const wanted = [
    { address: any, port: ports.kubelet, field: 'ports.kubelet', what: 'the kubelet', component: undefined },
    ...(roles.has('etcd') && settings.storage === undefined
      ? [
          { address: '127.0.0.1', port: ports.etcd, field: 'ports.etcd', what: 'etcd', component: 'etcd' },
          { address: settings.nodeIpIsBridge ? '127.0.0.1' : settings.nodeIp, port: ports.etcdPeer, field: 'ports.etcdPeer', what: 'etcd peers', component: 'etcd' },
        ]
      : []),
    ...(roles.has('master')
      ? [
          { address: any, port: ports.api, field: 'ports.api', what: 'the API server', component: 'api' },
          {
            address: '127.0.0.1',
            port: ports.controllers,
            field: 'ports.controllers',
            what: 'the controllers',
            component: 'controllers',
          },
        ]
      : []),
  ];
  for (const each of wanted) {
    if (each.component === undefined || !running.has(`kube-system/${each.component}`)) await checkPort(each);
  }
}
