/** The API server's network: TLS listener and connections to kubelets. */
import type { HttpPort } from '../../components/apiserver/port.ts';
import { backends } from './backend.ts';
import { listen } from './listener.ts';

export function createHttp(): HttpPort {
  return { listen, backends };
}
