/** What a container runtime on this host does not do itself for the kubelet. */
import type { ByteStream } from '../../../core/podplan/port.ts';

export interface CriHost {
  /** Of `SIGUSR1`, `SIGRTMIN+3` …; SIGTERM for what is none. */
  signalNumber(name: string): number;
  /** Without effect on a process that is gone. */
  kill(pid: number, signal: number): void;
  /** Of the logs of a pod; one that is there is fine. */
  makeDirectory(path: string): Promise<void>;
  /** Runtimes would make what is to be mounted and is not there. */
  isThere(path: string): Promise<boolean>;
  /** Processes of the cgroup that a process is in; 0 when it is gone. */
  processes(pid: number): Promise<number>;
  /** To a port on loopback of a network namespace; undefined: the host's. Throws RuntimeError 'network'. */
  connect(network: string | undefined, port: number): Promise<ByteStream>;
}
