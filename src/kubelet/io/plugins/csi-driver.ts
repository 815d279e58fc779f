/** A client of a CSI driver's node service. Source: container-storage-interface/spec csi.proto v1. */

import { RpcError } from '../../../wire/grpc/messages.ts';
import { entry, fields } from '../../../wire/grpc/plugin-calls.ts';
import { callOnSocket, type UnixCallOptions } from '../../../wire/grpc/unix-calls.ts';
import { Writer } from '../../../wire/protobuf/protobuf.ts';
import {
  type CsiAccessMode,
  type CsiConnector,
  CsiError,
  type CsiNode,
  type CsiNodeCapability,
  type CsiNodeInfo,
  type CsiStageRequest,
  type CsiUsage,
  type CsiVolumeCapability,
} from '../../volumes/csi/port.ts';

/** Upstream's csiTimeout. */
const TIMEOUT_MS = 120_000;
const SERVICE = '/csi.v1.Node/';

const CAPABILITIES: readonly (CsiNodeCapability | undefined)[] = [
  undefined,
  'STAGE_UNSTAGE_VOLUME',
  'GET_VOLUME_STATS',
  'EXPAND_VOLUME',
  'VOLUME_CONDITION',
  'SINGLE_NODE_MULTI_WRITER',
  'VOLUME_MOUNT_GROUP',
];

const ACCESS_MODES: Readonly<Record<CsiAccessMode, number>> = {
  SINGLE_NODE_WRITER: 1,
  MULTI_NODE_READER_ONLY: 3,
  MULTI_NODE_MULTI_WRITER: 5,
  SINGLE_NODE_SINGLE_WRITER: 6,
  SINGLE_NODE_MULTI_WRITER: 7,
};

const CODES =
  'OK Canceled Unknown InvalidArgument DeadlineExceeded NotFound AlreadyExists PermissionDenied ResourceExhausted FailedPrecondition Aborted OutOfRange Unimplemented Internal Unavailable DataLoss Unauthenticated'.split(
    ' ',
  );

export function createCsiConnector(options: UnixCallOptions): CsiConnector {
  return (socket) =>
    csiNode(async (method, message) => {
      try {
        return await callOnSocket(socket, `${SERVICE}${method}`, message, TIMEOUT_MS, options);
      } catch (error) {
        throw error instanceof RpcError ? new CsiError(CODES[error.code] ?? String(error.code), error.message) : error;
      }
    });
}

type Call = (method: string, message: Buffer) => Promise<Buffer>;

function csiNode(call: Call): CsiNode {
  return {
    info: async () => readInfo(await call('NodeGetInfo', EMPTY)),
    capabilities: async () => readCapabilities(await call('NodeGetCapabilities', EMPTY)),
    async stage(request) {
      const writer = new Writer(512).string(1, request.volumeId);
      writeMap(writer, 2, request.publishContext);
      writer.string(3, request.stagingPath).message(4, capabilityOf(request.capability));
      writeMap(writer, 5, request.secrets);
      writeMap(writer, 6, request.volumeContext);
      await call('NodeStageVolume', writer.finish());
    },
    async unstage(volumeId, stagingPath) {
      await call('NodeUnstageVolume', new Writer(256).string(1, volumeId).string(2, stagingPath).finish());
    },
    async publish(request) {
      await call('NodePublishVolume', publishMessage(request));
    },
    async unpublish(volumeId, targetPath) {
      await call('NodeUnpublishVolume', new Writer(256).string(1, volumeId).string(2, targetPath).finish());
    },
    async stats(volumeId, volumePath, stagingPath) {
      const message = new Writer(256).string(1, volumeId).string(2, volumePath).string(3, stagingPath).finish();
      return readStats(await call('NodeGetVolumeStats', message));
    },
    async expand({ volumeId, volumePath, stagingPath, requiredBytes, capability, secrets }) {
      const writer = new Writer(512).string(1, volumeId).string(2, volumePath);
      writer.message(3, new Writer(32).int(1, requiredBytes).finish());
      writer.string(4, stagingPath).message(5, capabilityOf(capability));
      writeMap(writer, 6, secrets);
      let bytes = 0;
      fields(await call('NodeExpandVolume', writer.finish()), (field, reader) => {
        if (field === 1) bytes = reader.int();
        else reader.skip();
      });
      return bytes;
    },
  };
}

const EMPTY = Buffer.alloc(0);

function publishMessage(
  request: CsiStageRequest & { readonly targetPath: string; readonly readOnly: boolean },
): Buffer {
  const writer = new Writer(512).string(1, request.volumeId);
  writeMap(writer, 2, request.publishContext);
  writer.string(3, request.stagingPath).string(4, request.targetPath);
  writer.message(5, capabilityOf(request.capability)).bool(6, request.readOnly);
  writeMap(writer, 7, request.secrets);
  writeMap(writer, 8, request.volumeContext);
  return writer.finish();
}

function writeMap(writer: Writer, field: number, texts: Readonly<Record<string, string>>): void {
  for (const [key, value] of Object.entries(texts)) {
    writer.message(field, new Writer(128).string(1, key).string(2, value).finish());
  }
}

function capabilityOf({ access, mode }: CsiVolumeCapability): Buffer {
  const writer = new Writer(128);
  if (access.type === 'block') writer.message(1, EMPTY);
  else {
    const mount = new Writer(128).string(1, access.fsType);
    for (const flag of access.mountFlags) mount.message(2, Buffer.from(flag));
    writer.message(2, mount.string(3, access.group).finish());
  }
  return writer.message(3, new Writer(8).int(1, ACCESS_MODES[mode]).finish()).finish();
}

function readInfo(message: Buffer): CsiNodeInfo {
  let nodeId = '';
  let maxVolumes = 0;
  const topology: [string, string][] = [];
  fields(message, (field, reader) => {
    if (field === 1) nodeId = reader.string();
    else if (field === 2) maxVolumes = reader.int();
    else if (field === 3)
      fields(reader.bytes(), (inner, segments) => {
        if (inner === 1) topology.push(entry(segments.bytes()));
        else segments.skip();
      });
    else reader.skip();
  });
  return { nodeId, maxVolumes: Math.max(0, maxVolumes), topology: Object.fromEntries(topology) };
}

function readCapabilities(message: Buffer): ReadonlySet<CsiNodeCapability> {
  const found = new Set<CsiNodeCapability>();
  messagesIn(message, 1, (capability) =>
    messagesIn(capability, 1, (rpc) =>
      fields(rpc, (field, reader) => {
        if (field !== 1) {
          reader.skip();
          return;
        }
        const name = CAPABILITIES[reader.int()];
        if (name !== undefined) found.add(name);
      }),
    ),
  );
  return found;
}

function messagesIn(message: Uint8Array, wanted: number, on: (message: Buffer) => void): void {
  fields(message, (field, reader) => {
    if (field === wanted) on(reader.bytes());
    else reader.skip();
  });
}

function readStats(message: Buffer): { usage: CsiUsage[]; abnormal?: string } {
  const usage: CsiUsage[] = [];
  let condition: { abnormal?: string } = {};
  fields(message, (field, reader) => {
    if (field === 1) usage.push(readUsage(reader.bytes()));
    else if (field === 2) condition = readCondition(reader.bytes());
    else reader.skip();
  });
  return { usage, ...condition };
}

function readUsage(message: Buffer): CsiUsage {
  const numbers = [0, 0, 0, 0, 0];
  fields(message, (field, reader) => {
    if (field < numbers.length) numbers[field] = reader.int();
    else reader.skip();
  });
  const [, available = 0, total = 0, used = 0, unit] = numbers;
  return { unit: unit === 2 ? 'inodes' : 'bytes', available, total, used };
}

function readCondition(message: Buffer): { abnormal?: string } {
  let isAbnormal = false;
  let text = '';
  fields(message, (field, reader) => {
    if (field === 1) isAbnormal = reader.bool();
    else if (field === 2) text = reader.string();
    else reader.skip();
  });
  return isAbnormal ? { abnormal: text } : {};
}
