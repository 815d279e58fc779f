import type { ProbeNetwork } from '../../probes/port.ts';
import { grpcHealth } from './grpc-health.ts';
import { httpGet } from './http-get.ts';
import { connect } from './tcp-connect.ts';

export const probeNetwork: ProbeNetwork = { connect, httpGet, grpcHealth };
