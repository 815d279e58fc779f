/** Checks the ports of the components before any is started. */
import type { Settings } from '../config/settings.ts';
import type { HostRuntime } from '../node/runtime.ts';
import { checkPort } from './ports.ts';

/**
 * `running`: components that still run from an earlier host process, such as `kube-system/etcd`. Throws CodedError
 * 'address-in-use' with the port and its field.
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

/** `namespace/container` of the running containers. */
export async function runningComponents({ runtime }: HostRuntime): Promise<ReadonlySet<string>> {
  const running = (await runtime.listContainers()).filter((container) => container.state === 'running');
  return new Set(running.map(({ labels, name }) => `${labels['io.kubernetes.pod.namespace'] ?? ''}/${name}`));
}
