import type { Settings } from '../config/settings.ts';

/** Loopback only: the balancer adds no way into the control plane from outside. */
export const BALANCER_ADDRESS = '127.0.0.1';

/** The server of the kubeconfigs of this host's components. */
export const balancerUrl = ({ ports }: Pick<Settings, 'ports'>): string =>
  `https://${BALANCER_ADDRESS}:${ports.balancer}`;
