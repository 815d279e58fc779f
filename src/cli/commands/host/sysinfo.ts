import { bytesText } from '../../../base/text/bytes-text.ts';
import type { Disk, SystemInformation } from '../../../host/hardware/sysinfo.ts';
import type { Command } from '../../command.ts';
import { OUTPUT_FLAG, printDocument, printTable } from '../../printers.ts';

export const sysinfoCommand: Command = {
  name: 'sysinfo',
  usage: '[-o json|yaml|wide]',
  summary: 'show the hardware and the kernel features that pods need',
  description:
    'SMART needs smartctl (package smartmontools), memory modules and serial numbers need dmidecode, USB devices lsusb (usbutils) and ' +
    'graphics cards lspci (pciutils), all as root. -o wide adds the SMART attributes.',
  flags: { output: OUTPUT_FLAG },
  arguments: [0, 0],
  examples: [
    ['Hardware of this host', 'sysinfo'],
    ['With the SMART attributes of the disks', 'sysinfo -o wide'],
  ],
  run: async ({ flags, out }) => {
    const { readSystemInformation } = await import('../../../host/hardware/sysinfo.ts');
    const information = await readSystemInformation();
    out.stdout((await printDocument(flags, information)) ?? printSystem(information, flags['output'] === 'wide'));
    return 0;
  },
};

const YES_NO = (value: boolean): string => (value ? 'yes' : 'no');

/** Text output: a block of fields per section, and a table for sections with several entries. */
export function printSystem({ hardware, cgroups, kernel }: SystemInformation, wide: boolean): string {
  const { system, processor, memory, temperatures } = hardware;
  const sections = [
    fields('SYSTEM', [
      ['manufacturer', system.manufacturer],
      ['model', system.model],
      ['serial', system.serial],
      ['uuid', system.uuid],
      ['firmware', system.firmware],
      ['chassis', system.chassis],
      ['virtual', system.virtual],
    ]),
    fields('PROCESSOR', [
      ['model', processor.model],
      ['sockets/cores/threads', `${processor.sockets}/${processor.cores}/${processor.threads}`],
      ['maximum', processor.maxMegahertz === undefined ? undefined : `${processor.maxMegahertz} MHz`],
      ['virtualization', YES_NO(processor.virtualization)],
    ]),
    fields('MEMORY', [
      ['total', bytesText(memory.totalBytes)],
      ['swap', bytesText(memory.swapBytes)],
    ]),
    table(
      ['MODULE', 'SIZE', 'TYPE', 'MHZ', 'MANUFACTURER', 'PART', 'SERIAL'],
      memory.modules.map((each) => [
        each.slot,
        bytesText(each.bytes),
        each.type,
        each.megahertz,
        each.manufacturer,
        each.part,
        each.serial,
      ]),
    ),
    table(
      ['DISK', 'TYPE', 'SIZE', 'MODEL', 'SERIAL', 'FIRMWARE', '°C', 'SMART', 'HOURS', 'USED'],
      hardware.disks.map((each) => [
        each.device,
        each.type,
        bytesText(each.bytes),
        each.model,
        each.serial,
        each.firmware,
        each.temperatureCelsius,
        each.smart === undefined ? undefined : each.smart.passed ? 'passed' : 'FAILED',
        each.smart?.powerOnHours,
        each.smart?.percentageUsed === undefined ? undefined : `${each.smart.percentageUsed}%`,
      ]),
    ),
    ...(wide ? hardware.disks.map(attributesOf) : []),
    table(
      ['NETWORK', 'MAC', 'STATE', 'MBIT/S', 'DUPLEX', 'MTU', 'ADDRESSES'],
      hardware.networkCards.map((each) => [
        each.name,
        each.mac,
        each.state,
        each.megabitsPerSecond,
        each.duplex,
        each.mtu,
        each.addresses.join(','),
      ]),
    ),
    table(
      ['USB', 'VENDOR', 'TYPE', 'NAME'],
      hardware.usb.map((each) => [`${each.bus}:${each.device}`, each.vendor, each.type, each.name]),
    ),
    table(
      ['GRAPHICS', 'VENDOR', 'MEMORY', 'MODEL'],
      hardware.graphics.map((each) => [
        each.busAddress,
        each.vendor,
        each.memoryBytes === undefined ? undefined : bytesText(each.memoryBytes),
        each.model,
      ]),
    ),
    fields('TEMPERATURES', [
      ['processor', celsius(temperatures.processorCelsius)],
      ['cores', temperatures.coresCelsius.length === 0 ? undefined : temperatures.coresCelsius.map(celsius).join(' ')],
      ['chipset', celsius(temperatures.chipsetCelsius)],
    ]),
    table(
      ['CGROUP', 'VERSION', 'CONTROLLERS'],
      cgroups.map((each) => [each.mount, each.version, each.controllers.join(',')]),
    ),
    fields('KERNEL', [
      ['release', kernel.release],
      ['namespaces', kernel.namespaces.join(' ')],
      ['security modules', kernel.securityModules.join(' ')],
      ['seccomp actions', kernel.seccompActions.join(' ')],
      ['pressure stall', YES_NO(kernel.pressureStall)],
      ['BTF', YES_NO(kernel.btf)],
      ['overlay', YES_NO(kernel.overlay)],
      ['configuration', kernel.configuration],
      ...(['builtin', 'module', 'absent'] as const).map((state): [string, string] => [
        state,
        Object.entries(kernel.options)
          .flatMap(([option, found]) => (found === state ? [option] : []))
          .join(' '),
      ]),
    ]),
    fields(
      'PROBLEMS',
      hardware.problems.map((problem, at): [string, string] => [String(at + 1), problem]),
    ),
  ];
  return sections.filter((section) => section !== '').join('\n');
}

function attributesOf({ device, smart }: Disk): string {
  return table(
    [`SMART ${device}`, 'ATTRIBUTE', 'VALUE', 'WORST', 'THRESHOLD', 'RAW'],
    (smart?.attributes ?? []).map((each) => [each.id, each.name, each.value, each.worst, each.threshold, each.raw]),
  );
}

const celsius = (value: number | undefined): string | undefined => (value === undefined ? undefined : `${value} °C`);

/** Table with a header. Empty if there are no rows. A missing value is shown as `-`. */
function table(header: readonly string[], rows: readonly (readonly (string | number | undefined)[])[]): string {
  if (rows.length === 0) return '';
  return printTable(
    header,
    rows.map((row) => row.map((cell) => (cell === undefined || cell === '' ? '-' : String(cell)))),
  );
}

/** Block of fields below a title. Empty if no field has a value. */
function fields(title: string, pairs: readonly (readonly [string, string | undefined])[]): string {
  const given = pairs.flatMap(([name, value]) => (value === undefined || value === '' ? [] : [[`  ${name}`, value]]));
  return given.length === 0 ? '' : printTable([title, ''], given);
}
