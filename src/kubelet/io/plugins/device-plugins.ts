/** The kubelet's side of device plug-ins. Source: k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1 (api.proto). */

import { messageOf } from '../../../base/errors.ts';
import type { Log } from '../../../base/log.ts';
import type { Clock } from '../../../base/time/clock.ts';
import {
  callPluginMethod,
  EMPTY,
  entry,
  fields,
  newMessage,
  openChannel,
  pluginError,
  serveUnary,
  strings,
} from '../../../wire/grpc/plugin-calls.ts';
import type {
  AllocateAnswer,
  DeviceMount,
  DeviceNode,
  DevicePluginConnection,
  ListedDevice,
  PluginOptions,
  Registration,
  Served,
} from '../../devices/port.ts';

const SERVICE = '/v1beta1.DevicePlugin/';
const CALL_MS = 10_000;
/** Upstream's KubeletPreStartContainerRPCTimeoutInSecs. */
const PRE_START_MS = 30_000;

export function serveRegistration(path: string, register: (it: Registration) => void, log: Log): Promise<Served> {
  const Register = (message: Uint8Array): Buffer => {
    register(readRegistration(message));
    return EMPTY;
  };
  return serveUnary(path, 'v1beta1.Registration', { Register }, log);
}

export function connectDevicePlugin(socket: string, clock: Clock, log: Log): DevicePluginConnection {
  const channel = openChannel(socket, clock, log);
  const callService = (method: string, message: Buffer, timeoutMs = CALL_MS): Promise<Buffer> =>
    callPluginMethod(channel, socket, `${SERVICE}${method}`, message, timeoutMs);
  let closed = false;
  return {
    options: async () => readOptions(await callService('GetDevicePluginOptions', EMPTY)),
    watch({ listed, ended }) {
      const end = (error: Error): void => {
        if (!closed) ended(error);
        closed = true;
      };
      const stream = channel.stream(`${SERVICE}ListAndWatch`, {
        message: (message) => {
          if (closed) return;
          try {
            listed(readDevices(message));
          } catch (error) {
            stream.cancel();
            end(error instanceof Error ? error : new Error(messageOf(error)));
          }
        },
        ended: (error) => end(error === undefined ? new Error('ListAndWatch ended') : pluginError(error, socket)),
      });
      stream.send(EMPTY);
      stream.finish();
    },
    async preferred(available, size) {
      const request = strings(newMessage(), 1, available).int(3, size).finish();
      const answer = await callService('GetPreferredAllocation', newMessage().message(1, request).finish());
      const ids: string[] = [];
      fields(answer, (field, reader) => {
        if (field !== 1) reader.skip();
        else fields(reader.bytes(), (inner, device) => (inner === 1 ? ids.push(device.string()) : device.skip()));
      });
      return ids;
    },
    async allocate(ids) {
      const request = strings(newMessage(), 1, ids).finish();
      const answer = await callService('Allocate', newMessage().message(1, request).finish());
      const answers: AllocateAnswer[] = [];
      fields(answer, (field, reader) => {
        if (field === 1) answers.push(readAnswer(reader.bytes()));
        else reader.skip();
      });
      return answers;
    },
    async preStart(ids) {
      await callService('PreStartContainer', strings(newMessage(), 1, ids).finish(), PRE_START_MS);
    },
    close() {
      closed = true;
      channel.close();
    },
  };
}

function readRegistration(message: Uint8Array): Registration {
  let [version, endpoint, resourceName] = ['', '', ''];
  let options: PluginOptions = { preStartRequired: false, preferredAllocation: false };
  fields(message, (field, reader) => {
    if (field === 1) version = reader.string();
    else if (field === 2) endpoint = reader.string();
    else if (field === 3) resourceName = reader.string();
    else if (field === 4) options = readOptions(reader.bytes());
    else reader.skip();
  });
  return { version, endpoint, resourceName, options };
}

function readOptions(message: Uint8Array): PluginOptions {
  let [preStartRequired, preferredAllocation] = [false, false];
  fields(message, (field, reader) => {
    if (field === 1) preStartRequired = reader.bool();
    else if (field === 2) preferredAllocation = reader.bool();
    else reader.skip();
  });
  return { preStartRequired, preferredAllocation };
}

function readDevices(message: Uint8Array): ListedDevice[] {
  const devices: ListedDevice[] = [];
  fields(message, (field, reader) => {
    if (field === 1) devices.push(readDevice(reader.bytes()));
    else reader.skip();
  });
  return devices;
}

function readDevice(message: Uint8Array): ListedDevice {
  let [id, health] = ['', ''];
  const numaNodes: number[] = [];
  fields(message, (field, reader) => {
    if (field === 1) id = reader.string();
    else if (field === 2) health = reader.string();
    else if (field === 3) fields(reader.bytes(), (_, nodes) => numaNodes.push(readNumaNode(nodes.bytes())));
    else reader.skip();
  });
  return { id, health, numaNodes };
}

function readNumaNode(message: Uint8Array): number {
  let id = 0;
  fields(message, (field, reader) => {
    if (field === 1) id = reader.int();
    else reader.skip();
  });
  return id;
}

function readAnswer(message: Uint8Array): AllocateAnswer {
  const env = new Map<string, string>();
  const annotations = new Map<string, string>();
  const mounts: DeviceMount[] = [];
  const devices: DeviceNode[] = [];
  const cdiDevices: string[] = [];
  fields(message, (field, reader) => {
    if (field === 1) env.set(...entry(reader.bytes()));
    else if (field === 2) mounts.push(readMount(reader.bytes()));
    else if (field === 3) devices.push(readNode(reader.bytes()));
    else if (field === 4) annotations.set(...entry(reader.bytes()));
    else if (field === 5) fields(reader.bytes(), (_, device) => cdiDevices.push(device.string()));
    else reader.skip();
  });
  return { env, annotations, mounts, devices, cdiDevices };
}

function readMount(message: Uint8Array): DeviceMount {
  let [containerPath, hostPath, readOnly] = ['', '', false];
  fields(message, (field, reader) => {
    if (field === 1) containerPath = reader.string();
    else if (field === 2) hostPath = reader.string();
    else if (field === 3) readOnly = reader.bool();
    else reader.skip();
  });
  return { containerPath, hostPath, readOnly };
}

function readNode(message: Uint8Array): DeviceNode {
  let [containerPath, hostPath, permissions] = ['', '', ''];
  fields(message, (field, reader) => {
    if (field === 1) containerPath = reader.string();
    else if (field === 2) hostPath = reader.string();
    else if (field === 3) permissions = reader.string();
    else reader.skip();
  });
  return { containerPath, hostPath, permissions };
}
