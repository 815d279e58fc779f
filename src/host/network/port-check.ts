/** Checks the ports of all components before the first component is started. */
import type { Settings } from '../config/settings.ts';
import type { HostRuntime } from '../node/runtime.ts';
import { checkPort } from './ports.ts';

/**
 * Throws CodedError 'address-in-use' with the port and its field. `running`: components that still run since an earlier
 * host process, such as `kube-system/etcd`; their ports are not checked.
 */
export async function checkPorts(settings: Settings, running: ReadonlySet<string>): Promise<void> {
  const { ports, roles } = settings;
  const any = settings.nodeIp.includes(':') ? '::' : '0.0.0.0';
  const wanted = [
    { address: any, port: ports.kubelet, field: 'ports.kubelet', what: 'the kubelet', component: undefined },
    {
      address: '127.0.0.1',
      port: ports.balancer,
      field: 'ports.balancer',
      what: 'the API balancer',
      component: 'balancer-keeper',
    },
    ...(roles.has('etcd') && settings.storage === undefined
      ? [
          { address: '127.0.0.1', port: ports.etcd, field: 'ports.etcd', what: 'etcd', component: 'etcd' },
          {
            address: settings.nodeIpIsBridge ? '127.0.0.1' : settings.nodeIp,
            port: ports.etcdPeer,
            field: 'ports.etcdPeer',
            what: 'etcd peers',
            component: 'etcd',
          },
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

/** Running containers as `namespace/container`. */
export async function runningComponents({ runtime }: HostRuntime): Promise<ReadonlySet<string>> {
  const running = (await runtime.listContainers()).filter((container) => container.state === 'running');
  return new Set(running.map(({ labels, name }) => `${labels['io.kubernetes.pod.namespace'] ?? ''}/${name}`));
}
