/** Node service of a CSI driver. Source: container-storage-interface/spec, csi.proto v1. */

/** Error of a CSI call. `code`: upstream's name of the gRPC status, or its number if it has no name. */
export class CsiError extends Error {
  readonly code: string;
  constructor(code: string, message: string) {
    super(`rpc error: code = ${code} desc = ${message}`);
    this.name = 'CsiError';
    this.code = code;
  }
}

/** Errors after which the call may still be in progress in the driver. Source: pkg/volume/csi isFinalError. */
const UNCERTAIN = ['Canceled', 'DeadlineExceeded', 'Unavailable', 'ResourceExhausted', 'Aborted'];

/**
 * Whether the error is final: the driver has ended the call without effect and does not continue it in the background.
 */
export const isFinal = (error: unknown): boolean => error instanceof CsiError && !UNCERTAIN.includes(error.code);

const INFEASIBLE = ['InvalidArgument', 'OutOfRange', 'NotFound'];

/** Whether a retry can never succeed. Source: pkg/volume/csi isInfeasibleError. */
export const isInfeasible = (error: unknown): boolean => error instanceof CsiError && INFEASIBLE.includes(error.code);

export type CsiNodeCapability =
  | 'STAGE_UNSTAGE_VOLUME'
  | 'GET_VOLUME_STATS'
  | 'EXPAND_VOLUME'
  | 'VOLUME_CONDITION'
  | 'SINGLE_NODE_MULTI_WRITER'
  | 'VOLUME_MOUNT_GROUP';

export type CsiAccessMode =
  | 'SINGLE_NODE_WRITER'
  | 'MULTI_NODE_READER_ONLY'
  | 'MULTI_NODE_MULTI_WRITER'
  | 'SINGLE_NODE_SINGLE_WRITER'
  | 'SINGLE_NODE_MULTI_WRITER';

export interface CsiNodeInfo {
  readonly nodeId: string;
  /** 0 means that the driver reports no limit. */
  readonly maxVolumes: number;
  readonly topology: Readonly<Record<string, string>>;
}

export interface CsiVolumeCapability {
  readonly access:
    | { readonly type: 'block' }
    | {
        readonly type: 'mount';
        readonly fsType: string;
        readonly mountFlags: readonly string[];
        /** Only for drivers with VOLUME_MOUNT_GROUP, otherwise ''. */
        readonly group: string;
      };
  readonly mode: CsiAccessMode;
}

type Texts = Readonly<Record<string, string>>;

export interface CsiStageRequest {
  readonly volumeId: string;
  readonly publishContext: Texts;
  readonly stagingPath: string;
  readonly capability: CsiVolumeCapability;
  readonly secrets: Texts;
  readonly volumeContext: Texts;
}

export interface CsiPublishRequest extends CsiStageRequest {
  readonly targetPath: string;
  readonly readOnly: boolean;
}

export interface CsiExpandRequest {
  readonly volumeId: string;
  readonly volumePath: string;
  readonly stagingPath: string;
  readonly requiredBytes: number;
  readonly capability: CsiVolumeCapability;
  readonly secrets: Texts;
}

export interface CsiUsage {
  readonly unit: 'bytes' | 'inodes';
  readonly available: number;
  readonly total: number;
  readonly used: number;
}

export interface CsiVolumeStats {
  readonly usage: readonly CsiUsage[];
  /** Message of an abnormal volume condition reported by the driver. */
  readonly abnormal?: string;
}

/** Calls reject with CsiError, and with 'Unavailable' immediately when no driver listens on the socket. */
export interface CsiNode {
  info(): Promise<CsiNodeInfo>;
  capabilities(): Promise<ReadonlySet<CsiNodeCapability>>;
  stage(request: CsiStageRequest): Promise<void>;
  unstage(volumeId: string, stagingPath: string): Promise<void>;
  publish(request: CsiPublishRequest): Promise<void>;
  unpublish(volumeId: string, targetPath: string): Promise<void>;
  stats(volumeId: string, volumePath: string, stagingPath: string): Promise<CsiVolumeStats>;
  /** Returns the new size in bytes, or 0 when the driver does not report it. */
  expand(request: CsiExpandRequest): Promise<number>;
}

export type CsiConnector = (socket: string) => CsiNode;
