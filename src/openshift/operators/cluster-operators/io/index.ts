/** Probes of a host's own components: HTTP, TCP, DNS, links and directories. */
export { probeDirectories, probeLink } from './local-probes.ts';
export { httpProbe, probeDns, probeTcp } from './network.ts';
