/** Clients of DRA plug-ins. Source: k8s.io/kubelet/pkg/apis/dra/{v1,v1beta1}. */

import type { Log } from '../../../base/log.ts';
import type { Clock } from '../../../base/time/clock.ts';
import { callPluginMethod, EMPTY, fields, newMessage, openChannel } from '../../../wire/grpc/plugin-calls.ts';
import type { ClaimReference, DraPluginConnection, DraService, PreparedDevice } from '../../devices/port.ts';

const PACKAGE = '/k8s.io.kubelet.pkg.apis.dra.';
/** Upstream's default timeout for calls to a plug-in. */
const CALL_MS = 45_000;

export function connectDraPlugin(socket: string, service: DraService, clock: Clock, log: Log): DraPluginConnection {
  const channel = openChannel(socket, clock, log);
  const callService = async (method: string, claim: ClaimReference): Promise<Uint8Array> => {
    const { namespace, name, uid } = claim;
    const message = newMessage().string(1, namespace).string(2, uid).string(3, name).finish();
    const answer = await callPluginMethod(
      channel,
      socket,
      `${PACKAGE}${service}/${method}`,
      newMessage().message(1, message).finish(),
      CALL_MS,
    );
    const found = answerFor(answer, uid);
    if (found === undefined) throw new Error(`${socket}: ${method} has no answer for claim ${namespace}/${name}`);
    return found;
  };
  return {
    async prepare(claim) {
      const devices: PreparedDevice[] = [];
      let error = '';
      fields(await callService('NodePrepareResources', claim), (field, reader) => {
        if (field === 1) devices.push(readDevice(reader.bytes()));
        else if (field === 2) error = reader.string();
        else reader.skip();
      });
      if (error !== '')
        throw new Error(`NodePrepareResources failed for claim ${claim.namespace}/${claim.name}: ${error}`);
      return devices;
    },
    async unprepare(claim) {
      let error = '';
      fields(await callService('NodeUnprepareResources', claim), (field, reader) => {
        if (field === 1) error = reader.string();
        else reader.skip();
      });
      if (error !== '')
        throw new Error(`NodeUnprepareResources failed for claim ${claim.namespace}/${claim.name}: ${error}`);
    },
    close: () => channel.close(),
  };
}

/** Value of the claim's entry in a map by UID. */
function answerFor(message: Uint8Array, uid: string): Uint8Array | undefined {
  let found: Uint8Array | undefined;
  fields(message, (field, reader) => {
    if (field !== 1) {
      reader.skip();
      return;
    }
    let key = '';
    let value: Uint8Array = EMPTY;
    fields(reader.bytes(), (inner, pair) => {
      if (inner === 1) key = pair.string();
      else if (inner === 2) value = pair.bytes();
      else pair.skip();
    });
    if (key === uid) found = value;
  });
  return found;
}

function readDevice(message: Uint8Array): PreparedDevice {
  let [pool, device, shareId] = ['', '', ''];
  const requests: string[] = [];
  const cdiDevices: string[] = [];
  fields(message, (field, reader) => {
    if (field === 1) requests.push(reader.string());
    else if (field === 2) pool = reader.string();
    else if (field === 3) device = reader.string();
    else if (field === 4) cdiDevices.push(reader.string());
    else if (field === 5) shareId = reader.string();
    else reader.skip();
  });
  return { requests, pool, device, cdiDevices, ...(shareId === '' ? {} : { shareId }) };
}
