/** Registration sockets of the kubelet's plug-ins. Source: k8s.io/kubelet/pkg/apis/pluginregistration/v1 api.proto. */
import { lstat, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { fields } from '../../../wire/grpc/plugin-calls.ts';
import { callOnSocket, type UnixCallOptions } from '../../../wire/grpc/unix-calls.ts';
import { Writer } from '../../../wire/protobuf/protobuf.ts';
import type { RegistrationSockets } from '../../plugins/port.ts';

const TIMEOUT_MS = 10_000;
const MAX_SOCKETS = 256;
const SERVICE = '/pluginregistration.Registration/';

export function createRegistrationSockets(options: UnixCallOptions): RegistrationSockets {
  const call = (socket: string, method: string, message: Buffer): Promise<Buffer> =>
    callOnSocket(socket, `${SERVICE}${method}`, message, TIMEOUT_MS, options);
  return {
    list: socketsIn,
    async info(socket) {
      const answer = await call(socket, 'GetInfo', Buffer.alloc(0));
      let [type, name, endpoint] = ['', '', ''];
      const versions: string[] = [];
      fields(answer, (field, reader) => {
        if (field === 1) type = reader.string();
        else if (field === 2) name = reader.string();
        else if (field === 3) endpoint = reader.string();
        else if (field === 4) versions.push(reader.string());
        else reader.skip();
      });
      return { type, name, endpoint, versions };
    },
    async notify(socket, error) {
      const message = new Writer(128)
        .bool(1, error === '')
        .string(2, error)
        .finish();
      await call(socket, 'NotifyRegistrationStatus', message);
    },
  };
}

async function socketsIn(directory: string): Promise<ReadonlyMap<string, string>> {
  const found = new Map<string, string>();
  const names = (await readdir(directory)).filter((name) => !name.startsWith('.')).sort();
  for (const name of names.slice(0, MAX_SOCKETS)) {
    const path = join(directory, name);
    const status = await lstat(path).catch(() => undefined);
    if (status?.isSocket() === true) found.set(path, `${status.ino}/${status.ctimeMs}`);
  }
  return found;
}
