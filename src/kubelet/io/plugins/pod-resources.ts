/** The pod-resources API. Source: k8s.io/kubelet/pkg/apis/podresources/v1 (api.proto). */
import type { Log } from '../../../base/log.ts';
import { RpcError } from '../../../wire/grpc/messages.ts';
import { fields, newMessage, serveUnary, strings } from '../../../wire/grpc/plugin-calls.ts';
import { RpcCode } from '../../../wire/grpc/port.ts';
import type { PodResources, PodResourcesSource, ResourceDevices, Served } from '../../devices/port.ts';

export function servePodResources(path: string, source: PodResourcesSource, log: Log): Promise<Served> {
  const methods = {
    List: () => {
      const answer = newMessage();
      for (const pod of source.list()) answer.message(1, podMessage(pod));
      return answer.finish();
    },
    GetAllocatableResources: () => {
      const answer = newMessage();
      for (const devices of source.allocatable()) answer.message(1, devicesMessage(devices));
      return answer.finish();
    },
    Get: (message: Uint8Array) => {
      let [name, namespace] = ['', ''];
      fields(message, (field, reader) => {
        if (field === 1) name = reader.string();
        else if (field === 2) namespace = reader.string();
        else reader.skip();
      });
      const pod = source.list().find((each) => each.name === name && each.namespace === namespace);
      if (pod === undefined) throw new RpcError(RpcCode.notFound, `pod ${name} in namespace ${namespace} not found`);
      return newMessage().message(1, podMessage(pod)).finish();
    },
  };
  return serveUnary(path, 'v1.PodResourcesLister', methods, log);
}

function podMessage(pod: PodResources): Buffer {
  const out = newMessage().string(1, pod.name).string(2, pod.namespace);
  for (const container of pod.containers) {
    const inner = newMessage().string(1, container.name);
    for (const devices of container.devices) inner.message(2, devicesMessage(devices));
    for (const { claimName, claimNamespace, driver, pool, device, cdiDevices, shareId = '' } of container.dynamic) {
      const resource = newMessage();
      for (const name of cdiDevices) resource.message(1, newMessage().string(1, name).finish());
      resource.string(2, driver).string(3, pool).string(4, device).string(5, shareId);
      const claim = newMessage().string(2, claimName).string(3, claimNamespace).message(4, resource.finish());
      inner.message(5, claim.finish());
    }
    out.message(3, inner.finish());
  }
  return out.finish();
}

function devicesMessage({ resource, ids, numaNodes }: ResourceDevices): Buffer {
  const out = strings(newMessage().string(1, resource), 2, ids);
  if (numaNodes.length === 0) return out.finish();
  const topology = newMessage();
  for (const node of numaNodes) topology.message(1, newMessage().int(1, node).finish());
  return out.message(3, topology.finish()).finish();
}
