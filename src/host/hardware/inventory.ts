/**
 * The report of `hyperedge sysinfo`: a host's hardware and the kernel features that the runtime needs. Sizes are in
 * bytes, temperatures in degrees Celsius. Unknown fields are absent.
 */

export interface Hardware {
  readonly system: {
    readonly manufacturer?: string;
    readonly model?: string;
    readonly serial?: string;
    readonly uuid?: string;
    readonly firmware?: string;
    readonly chassis?: string;
    /** The hypervisor of a virtual machine. */
    readonly virtual?: string;
  };
  readonly processor: {
    readonly model?: string;
    readonly sockets: number;
    readonly cores: number;
    readonly threads: number;
    readonly maxMegahertz?: number;
    readonly virtualization: boolean;
  };
  readonly memory: {
    readonly totalBytes: number;
    readonly swapBytes: number;
    readonly modules: readonly MemoryModule[];
  };
  readonly disks: readonly Disk[];
  readonly networkCards: readonly NetworkCard[];
  readonly usb: readonly UsbDevice[];
  readonly graphics: readonly GraphicsCard[];
  readonly temperatures: {
    readonly processorCelsius?: number;
    readonly coresCelsius: readonly number[];
    readonly chipsetCelsius?: number;
  };
  /** Sections that could not be read, each with the reason. */
  readonly problems: readonly string[];
}

export interface MemoryModule {
  readonly slot?: string;
  readonly bytes: number;
  readonly type?: string;
  readonly megahertz?: number;
  readonly manufacturer?: string;
  readonly part?: string;
  readonly serial?: string;
}

export interface Disk {
  readonly device: string;
  /** `HD`, `SSD`, `NVMe`, or the transport as named by lsblk(8). */
  readonly type?: string;
  readonly model?: string;
  readonly serial?: string;
  readonly firmware?: string;
  readonly bytes: number;
  readonly temperatureCelsius?: number;
  /** SMART data; absent if smartctl(8) is not installed or the disk has no SMART. */
  readonly smart?: Smart;
}

export interface Smart {
  readonly passed: boolean;
  readonly powerOnHours?: number;
  /** NVMe only: used percentage of the rated endurance. It may exceed 100. */
  readonly percentageUsed?: number;
  readonly attributes: readonly SmartAttribute[];
}

export interface SmartAttribute {
  readonly id: number;
  readonly name: string;
  readonly value: number;
  readonly worst: number;
  readonly threshold: number;
  readonly raw: string;
}

export interface NetworkCard {
  readonly name: string;
  readonly mac?: string;
  readonly state: string;
  readonly megabitsPerSecond?: number;
  readonly duplex?: string;
  readonly mtu?: number;
  readonly addresses: readonly string[];
}

export interface UsbDevice {
  readonly bus: number;
  readonly device: number;
  readonly name?: string;
  readonly vendor?: string;
  readonly type?: string;
}

export interface GraphicsCard {
  readonly vendor?: string;
  readonly model?: string;
  readonly busAddress?: string;
  readonly memoryBytes?: number;
}
