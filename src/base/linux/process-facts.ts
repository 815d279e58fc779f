/** Facts about this process from the kernel. Implemented in `src/kubelet/io/host-facts`. */
export interface ProcessFacts {
  /** Number of open file descriptors; undefined if `/proc` is not mounted. */
  openFiles(): Promise<number | undefined>;
  /** Contents of `/proc/self/limits` and `/proc/self/status`; empty if `/proc` is not mounted. Source: proc(5). */
  limits(): Promise<string>;
  status(): Promise<string>;
}
