"""The Python package: zero copy, lifetimes, policies, refusals; and, on several nodes, places. Run with an
argument it does only the last, for the laboratory."""

import gc
import inspect
import mmap
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import typing
import unittest
import warnings

import nodewise
import numpy as np

PAGE = nodewise.page_bytes()
NODES = nodewise.nodes()


def mapped(address):
    """Whether an address is mapped in this process."""
    for line in pathlib.Path("/proc/self/maps").read_text().splitlines():
        begin, end = (int(n, 16) for n in line.split()[0].split("-"))
        if begin <= address < end:
            return True
    return False


def address(array):
    return array.__array_interface__["data"][0]


def quiet(*arguments, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", nodewise.PlacementWarning)
        return nodewise.zeros(*arguments, **options)


class Arrays(unittest.TestCase):
    def test_an_array_is_zero_aligned_and_of_the_type_asked_for(self):
        numbers = (7, np.int64(7), np.array(7), np.array([3, 4]), [3, np.int32(4)])
        for shape in (*numbers, (5,), (3, 4), (2, 3, 4), (2, 3, 4, 5), (2, 3, 4, 5, 6), ()):
            for kind in ("f8", "i2", "c16", "?", [("a", "i4"), ("b", "f8")]):
                for order in "CF":
                    a = nodewise.zeros(shape, kind, order=order)
                    self.assertEqual((a.shape, a.dtype), (np.zeros(shape, kind).shape, np.dtype(kind)))
                    self.assertEqual(address(a) % PAGE, 0)
                    self.assertTrue(a.flags[f"{order}_CONTIGUOUS"] and a.flags.writeable)
                    self.assertEqual(a.tobytes(), bytes(a.nbytes))

    def test_views_share_memory(self):
        a = nodewise.empty((100, 100))
        view = a[10:20, ::3]
        view[...] = 7
        self.assertTrue(np.shares_memory(a, view))
        self.assertEqual(a.sum(), view.size * 7)

    def test_memory_is_freed_with_the_last_view_and_not_before(self):
        a = nodewise.zeros((512, 1024))
        at = address(a)
        view = a.T[5:][3:].reshape(-1, 2, 256)[:, 1]
        a[...] = 2
        self.assertTrue(np.shares_memory(a, view))
        del a
        gc.collect()
        self.assertTrue(mapped(at))
        self.assertEqual(view.sum(), 2 * view.size)
        del view
        gc.collect()
        self.assertFalse(mapped(at))

    def test_a_thousand_arrays_leave_nothing(self):
        before = pathlib.Path("/proc/self/maps").read_text().count("\n")
        for _ in range(1000):
            quiet((64, 1024), policy="cyclic rows")[0] = 1
        self.assertLess(pathlib.Path("/proc/self/maps").read_text().count("\n"), before + 20)

    def test_arrays_outlive_the_interpreter_s_end(self):
        program = "import nodewise; a = nodewise.zeros(1000); b = a[3:]; import atexit; atexit.register(b.sum)"
        subprocess.run([sys.executable, "-c", program], check=True)

    def test_wrong_sizes_are_value_errors(self):
        for shape in (0, (3, 0), -1, (4, -4), (2**40, 2**40), 2**63):
            with self.assertRaises(ValueError):
                nodewise.zeros(shape)
        with self.assertRaises(MemoryError):
            nodewise.zeros((2**28, 2**28))
        for options in ({"dtype": object}, {"dtype": "S0"}, {"order": "A"}, {"policy": "cyclix"}):
            with self.assertRaises(ValueError):
                nodewise.zeros(10, **options)


class Foreign(unittest.TestCase):
    def test_arrays_from_anywhere_can_be_placed_and_asked(self):
        with mmap.mmap(-1, 64 * PAGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as memory:
            shown = np.frombuffer(memory, np.float64).reshape(64, -1)
            for a in (np.ones((300, 300)), np.asfortranarray(np.ones((50, 40, 3))), np.ones(9), shown):
                sum_before = a.sum()
                for policy in ("cyclic", "cyclic rows 4", "random columns", "blocks", "first-touch"):
                    self.assertGreaterEqual(nodewise.place(a, policy).status, 0)
                self.assertEqual(a.sum(), sum_before)
                pages = nodewise.page_nodes(a)
                self.assertEqual(pages.size, -(-(address(a) % PAGE + a.nbytes) // PAGE))
                h = nodewise.histogram(a)
                self.assertEqual(sum(h.pages.values()) + h.untouched, pages.size)
            del shown, a

    def test_what_was_adopted_is_forgotten_with_its_memory(self):
        from nodewise import memory

        before = len(memory._adopted)
        for i in range(50):
            a = np.ones((100 + i, 1000))
            nodewise.place(a, "cyclic")
            nodewise.place(a[10:], "skew rows")
            nodewise.place(a.reshape(-1), "cyclic items 100")
            del a
        gc.collect()
        self.assertEqual(len(memory._adopted), before)

    def test_a_part_of_an_array_can_be_placed(self):
        a = nodewise.zeros((128, 1024))
        a[...] = 1
        self.assertGreaterEqual(nodewise.place(a[64:], "cyclic rows").status, 0)
        self.assertEqual(nodewise.page_nodes(a[64:]).size, 64 * 2)
        for other in (a[:64], a.reshape(-1)):
            with self.assertRaisesRegex(ValueError, "as a whole"):
                nodewise.place(other, "cyclic")

    def test_questions_leave_descriptions_and_copies_as_they_are(self):
        whole, part = np.ones((512, 1024)), nodewise.zeros((512, 1024))[10:20]
        for a in (whole, part):
            d = nodewise.describe(a, "cyclic rows 10")
            nodewise.replicate(a)
            near = address(nodewise.nearest(a))
            flat = a.reshape(-1)
            self.assertEqual(nodewise.histogram(flat), nodewise.histogram(a))
            half = nodewise.page_nodes(flat[: flat.size // 2])
            self.assertEqual(half.size, -(-(address(a) % PAGE + a.nbytes // 2) // PAGE))
            self.assertGreaterEqual(nodewise.gather(flat, NODES[0]).status, 0)
            self.assertGreaterEqual(d.distribute().status, 0)
            self.assertEqual(address(nodewise.nearest(flat)), near)

    def test_another_shape_waits_until_nothing_depends_on_the_first(self):
        a = np.ones((512, 1024))
        d = nodewise.describe(a, "cyclic rows 10")
        with self.assertRaisesRegex(ValueError, r"512 x 1024 items of 8 bytes.*del its Distribution"):
            nodewise.place(a.reshape(-1), "cyclic items 4096")
        self.assertGreaterEqual(d.distribute().status, 0)
        del d
        self.assertGreaterEqual(nodewise.place(a.reshape(-1), "cyclic items 4096").status, 0)

    def test_memory_of_two_arrays_is_known_until_both_are_gone(self):
        from nodewise import memory

        buffer = bytearray(1 << 20)
        a, b = np.frombuffer(buffer), np.frombuffer(buffer)
        nodewise.place(a, "cyclic")
        d = nodewise.describe(b, "cyclic")
        del a
        gc.collect()
        self.assertGreaterEqual(d.distribute().status, 0)
        at = address(b)
        del b, d
        gc.collect()
        self.assertNotIn(at, memory._adopted)

    def test_an_array_that_is_known_cannot_be_moved_away(self):
        a = np.ones(100000)
        nodewise.place(a, "cyclic")
        with self.assertRaises(ValueError):
            a.resize(2000000, refcheck=False)

    def test_what_does_not_lie_together_is_refused(self):
        a = np.ones((100, 100))
        for wrong in (a[:, ::2], a[::2], a[:0], np.empty((0, 3)), [1, 2], None, a[0, 0], np.array([object()] * 9)):
            with self.assertRaises(ValueError):
                nodewise.place(wrong, "cyclic")
            with self.assertRaises(ValueError):
                nodewise.page_nodes(wrong)


class Policies(unittest.TestCase):
    WORDS = (
        "first-touch", "cyclic pages", "cyclic rows 4", "cyclic items 512 on 0 weights 3", "skew columns 2",
        "prime 7 rows 2", "random pages seed 9", "bind-all", "node 0", "bind rows", "bind columns threads 3",
        "blocks rows", "block-exclusive", "block-exclusive 0 2", "blocks pages weights 1,2,3",
    )  # fmt: skip

    def test_words_and_objects_are_the_same(self):
        for words in self.WORDS:
            policy = nodewise.Policy.parse(words)
            self.assertEqual(str(policy), words)
            self.assertEqual(nodewise.Policy.parse(str(policy)), policy)
        for policy, words in (
            (nodewise.cyclic("rows", 4), "cyclic rows 4"),
            (nodewise.cyclic(), "cyclic"),
            (nodewise.block_cyclic(512), "block-cyclic 512"),
            (nodewise.skew("columns"), "skew columns"),
            (nodewise.prime(7, "rows", 2), "prime 7 rows 2"),
            (nodewise.random(seed=9), "random seed 9"),
            (nodewise.bind_all(nodes=[1, 0]), "bind-all on 1,0"),
            (nodewise.node(2), "node:2"),
            (nodewise.bind("rows"), "bind rows"),
            (nodewise.blocks("rows", weights=(2, 1)), "blocks rows weights 2,1"),
            (nodewise.block_exclusive(0, 2), "block-exclusive 0 2"),
            (nodewise.first_touch(), "first-touch"),
        ):
            self.assertEqual(nodewise.Policy.parse(words), policy)

        for policy in (
            nodewise.Policy("bind", "rows", block=4, granule="huge"),
            nodewise.Policy("bind-all", nodes=(0,), granule="base"),
            nodewise.Policy("bind-all", nodes=(0,), weights=(2,)),
            nodewise.Policy("block-exclusive", unit="rows", nodes=[1, 0]),
            nodewise.Policy("block-exclusive", axes=()),
            nodewise.Policy("prime", prime=7, threads=3, seed=2),
            nodewise.Policy("random", block=np.int64(4), seed=2**64 - 1),
        ):
            self.assertEqual(nodewise.Policy.parse(str(policy)), policy, str(policy))

    def test_what_is_no_policy_or_no_number_is_a_type_error(self):
        for wrong in (
            lambda: nodewise.place(np.ones(9), 3),
            lambda: nodewise.zeros(9, policy=b"cyclic"),
            lambda: nodewise.zeros(3.5),
            lambda: nodewise.zeros((3, 4.0)),
            lambda: nodewise.zeros("34"),
            lambda: nodewise.cyclic("rows", 2.5),
            lambda: nodewise.cyclic(nodes=["0"]),
        ):
            with self.assertRaisesRegex(TypeError, "policy|shape|block|node"):
                wrong()

    def test_errors_say_what_is_known(self):
        with self.assertRaisesRegex(ValueError, "block-cyclic, node$"):
            nodewise.Policy.parse("cyclix")
        with self.assertRaisesRegex(ValueError, "axis is -1"):
            nodewise.block_exclusive(-1)
        with self.assertRaisesRegex(ValueError, "axis -1 .* one of 0, 1$"):
            nodewise.describe(np.ones((9, 9)), "block-exclusive").cut(-1, 0)

    def test_wrong_policies_are_value_errors(self):
        a = nodewise.zeros((64, 64))
        for policy in (
            "", "interleav", "cyclic rows x", "cyclic rows 0", "cyclic rows -4", "cyclic 4 rows", "node", "node a",
            "node 1000000", "cyclic on", "cyclic on 0,99999", "prime 4", "prime", "block-exclusive 5",
            "cyclic weights 0", "skew weights 2", "cyclic rows 99999999999999999999999", "random seed",
        ):  # fmt: skip
            with self.assertRaises(ValueError, msg=policy):
                nodewise.place(a, policy)
        for wrong in (
            lambda: nodewise.cyclic("rows", -1),
            lambda: nodewise.cyclic("planes"),
            lambda: nodewise.cyclic(nodes=[2**32]),
            lambda: nodewise.cyclic(nodes=[-1]),
            lambda: nodewise.place(a, nodewise.cyclic(nodes=[])),
            lambda: nodewise.cyclic(nodes=[0], weights=[1, 2]),
            lambda: nodewise.place(a, nodewise.Policy("random", seed=-1)),
            lambda: nodewise.Policy("bind-all", block=4),
            lambda: nodewise.Policy("cyclic", axes=(0,)),
            lambda: nodewise.Policy("cyclic", prime=7),
            lambda: nodewise.Policy("cyclic", granule="giant"),
        ):
            with self.assertRaises(ValueError):
                wrong()

    def test_what_was_not_done_is_said(self):
        a = nodewise.zeros(4096)
        done = nodewise.place(a, "cyclic")
        if len(NODES) == 1 or os.environ.get("NODEWISE_PRETEND"):
            self.assertEqual(done.status, nodewise.Status.NOT_DONE)
            self.assertTrue(done.message and not done)
            with self.assertWarnsRegex(nodewise.PlacementWarning, ".") as caught:
                nodewise.zeros(4096, policy="cyclic")
            self.assertEqual(pathlib.Path(caught.filename), pathlib.Path(__file__))
        else:
            self.assertEqual(done, (nodewise.Status.OK, ""))


class Descriptions(unittest.TestCase):
    """By formulas alone: also of a machine that is pretended."""

    def test_cyclic_rows(self):
        a = nodewise.zeros((96, 1024))  # two pages a row
        d = nodewise.describe(a, "cyclic rows 4")
        self.assertEqual(d.nodes, NODES)
        expected = [NODES[p // 8 % len(NODES)] for p in range(192)]
        self.assertEqual(d.page_nodes().tolist(), expected)
        self.assertEqual([d.page_node(p) for p in (0, 8, 191)], [expected[p] for p in (0, 8, 191)])
        self.assertEqual(d.item_node(95, 1023), NODES[23 % len(NODES)])
        self.assertEqual(d.result.status, nodewise.Status.OK)

    def test_fortran_order_is_as_in_fortran(self):
        """A column is one piece of memory, whichever the axis' number is in memory."""
        a = nodewise.zeros((1024, 96), order="F")
        d = nodewise.describe(a, "cyclic columns 4")
        same = nodewise.describe(nodewise.zeros((96, 1024)), "cyclic rows 4")
        self.assertEqual(d.page_nodes().tolist(), same.page_nodes().tolist())
        for i, j in ((0, 0), (5, 9), (1023, 95)):
            self.assertEqual(d.item_node(i, j), NODES[j // 4 % len(NODES)])
        rows = nodewise.describe(a, "cyclic rows 8")
        self.assertEqual(rows.item_node(17, 3), NODES[2 % len(NODES)])
        with self.assertRaises(ValueError):
            d.item_node(1024, 0)

    def test_block_exclusive_is_a_latin_square(self):
        a = nodewise.zeros((120, 240))
        for array in (a, np.asfortranarray(a)):
            d = nodewise.describe(array, nodewise.block_exclusive(0, 1))
            n = len(d.nodes)
            square = [[d.item_node(d.cut(0, x), d.cut(1, y)) for y in range(n)] for x in range(n)]
            for line in (*square, *zip(*square)):
                self.assertEqual(sorted(line), d.nodes)
            self.assertEqual((d.cut(0, n), d.cut(1, n)), (120, 240))

    def test_more_than_four_dimensions(self):
        a = nodewise.zeros((4, 3, 2, 8, 1024))
        d = nodewise.describe(a, "cyclic rows")
        self.assertEqual([d.item_node(i, 2, 1, 7, 1023) for i in range(4)], [NODES[i % len(NODES)] for i in range(4)])

        for order in "CF":
            a = nodewise.zeros((6, 5, 4, 3, 8, 7), order=order)
            near, far = (0, 1, 2), (3, 4, 5)
            for axis in near if order == "C" else far:
                d = nodewise.describe(a, nodewise.block_exclusive(axis))
                self.assertEqual(d.cut(axis, len(d.nodes)), a.shape[axis])
            for axis in far if order == "C" else near:
                with self.assertRaises(ValueError):
                    nodewise.describe(a, nodewise.block_exclusive(axis))

    def test_a_finer_distribution_says_that_it_is_rounded(self):
        a = nodewise.zeros(100000)
        done = nodewise.describe(a, "cyclic items 100").result
        if len(NODES) > 1:
            self.assertEqual(done.status, nodewise.Status.ROUNDED)
            self.assertTrue(done and done.message)

    def test_pages_and_indices_out_of_range_are_value_errors(self):
        d = nodewise.describe(nodewise.zeros((8, 1024)), "cyclic")
        for wrong in (lambda: d.page_node(16), lambda: d.page_node(-1), lambda: d.item_node(8, 0),
                      lambda: d.cut(2, 0), lambda: d.cut(0, -1)):  # fmt: skip
            with self.assertRaises(ValueError):
                wrong()

    def test_a_description_shows_what_it_is(self):
        d = nodewise.describe(nodewise.zeros((96, 1024)), "cyclic rows 4")
        self.assertEqual(repr(d), f"<Distribution 'cyclic rows 4' of (96, 1024) float64 over nodes {NODES}>")

    def test_a_description_keeps_its_array(self):
        d = nodewise.describe(nodewise.zeros((64, 1024)), "blocks rows")
        gc.collect()
        self.assertGreaterEqual(d.distribute().status, 0)


class Machine(unittest.TestCase):
    def test_nodes_and_cpus(self):
        self.assertEqual(NODES, sorted(set(NODES)))
        self.assertTrue(all(nodewise.cpu_node(cpu) >= -1 for cpu in nodewise.cpus()))
        with self.assertRaises(ValueError):
            nodewise.cpu_node(10**6)

    def test_threads(self):
        self.assertEqual(nodewise.set_threads(3), 3)
        self.assertEqual(nodewise.get_threads(), 3)
        self.assertIn(nodewise.thread_node(2), NODES)
        for wrong in (3, -1, 2**32):
            with self.assertRaises(ValueError):
                nodewise.bind_thread(wrong)
        results = []
        workers = [threading.Thread(target=lambda t=t: results.append(nodewise.bind_thread(t))) for t in range(3)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        self.assertEqual(len(results), 3)
        if not os.environ.get("NODEWISE_PRETEND"):
            self.assertEqual({r.status for r in results}, {nodewise.Status.OK})
        self.assertGreater(nodewise.set_threads(0), 0)
        for wrong in (-1, 2**31):
            with self.assertRaises(ValueError):
                nodewise.set_threads(wrong)
        self.assertGreaterEqual(nodewise.statistics().calls, 0)

    def test_replicas_show_the_same(self):
        for a in (nodewise.zeros((100, 100)), np.ones((100, 100), order="F"), np.arange(5)):
            a[...] = np.arange(a.size).reshape(a.shape)
            self.assertGreaterEqual(nodewise.replicate(a).status, 0)
            copy = nodewise.nearest(a)
            self.assertTrue(np.array_equal(copy, a) and copy.dtype == a.dtype and not copy.flags.writeable)
            expected = a.copy()
            del a
            gc.collect()
            self.assertTrue(np.array_equal(copy, expected))

    def test_copies_are_reported_and_compared(self):
        a = nodewise.zeros((100, 1000))
        self.assertEqual(nodewise.check_copies(a).status, nodewise.Status.NOT_DONE)
        made = nodewise.replicate(a).status != nodewise.Status.NOT_DONE
        report = nodewise.copies(a)
        self.assertEqual(report.count > 0, made)
        self.assertEqual(report.bytes, sum(report.pages.values()) * PAGE)
        self.assertEqual(bool(nodewise.check_copies(a)), made)
        a[1, 1] = 3
        stale = nodewise.check_copies(a)
        self.assertFalse(stale)
        if made:
            self.assertEqual(stale.status, nodewise.Status.STALE)
            self.assertRegex(stale.message, f"from byte {8 * 1001 + 6} on")
        for wrong, error in (([10**6], ValueError), ([], ValueError), ([0.5], TypeError)):
            with self.assertRaises(error):
                nodewise.replicate(nodewise.zeros(5), wrong)

    def test_files_are_mapped_and_copied(self):
        values = np.arange(100_000, dtype="i4")
        with tempfile.NamedTemporaryFile() as file:
            file.write(values.tobytes())
            file.flush()
            for source in (file.name, pathlib.Path(file.name), file, file.fileno()):
                a = nodewise.map_file(source, "i4")
                self.assertTrue(np.array_equal(a, values) and not a.flags.writeable)
            part = nodewise.map_file(file, ">i2", shape=(3, 5), offset=4)
            self.assertTrue(np.array_equal(part, values.view(">i2")[2:17].reshape(3, 5)))
            made = nodewise.replicate(a, NODES[:1]).status != nodewise.Status.NOT_DONE
            copy = nodewise.nearest(a)
            self.assertTrue(np.array_equal(copy, values) and copy.dtype == a.dtype)
            self.assertEqual(nodewise.copies(a).count, int(made))
            file.seek(4000)
            file.write(b"xx")
            file.flush()
            self.assertEqual(nodewise.check_copies(a).status, nodewise.Status.STALE if made else nodewise.Status.NOT_DONE)
            self.assertTrue(np.array_equal(copy, values) == made)
            for wrong in (
                lambda a=a: nodewise.place(a, "cyclic"),
                lambda a=a: nodewise.replicate(a[5:]),
                lambda: nodewise.map_file(file, "i4", shape=100_001),
                lambda: nodewise.map_file(file, "i4", offset=399_999),
                lambda: nodewise.map_file(file, "i4", offset=-1),
                lambda: nodewise.map_file(file, object),
                lambda: nodewise.map_file("/"),
            ):
                with self.assertRaises(ValueError):
                    wrong()
            at = address(a)
            del a, copy, wrong
            gc.collect()
            self.assertFalse(mapped(at))
        with self.assertRaises(OSError):
            nodewise.map_file("/no/such/file")

    def test_the_guard_finds_a_write(self):
        program = (
            "import nodewise; a = nodewise.zeros(10000); made = nodewise.replicate(a); a[1000] = 5; b = nodewise.nearest(a)\n"
            "assert a[1000] == b[1000] == 5 and nodewise.check_copies(a).status == nodewise.Status.STALE"
        )
        done = subprocess.run([sys.executable, "-c", program], stderr=subprocess.PIPE, text=True, check=True,
                              env={**os.environ, "NODEWISE_GUARD": "1"})  # fmt: skip
        self.assertRegex(done.stderr, r"\(80000 bytes\) was written to at byte 8000 .*\n$")

    def test_migration_refuses_what_is_not_there(self):
        a = nodewise.zeros((16, 16))
        for wrong in (
            lambda: nodewise.migrate_rows(a, 10**6, 1, 0),
            lambda: nodewise.migrate_rows(a, NODES[0], 16, 1),
            lambda: nodewise.migrate_columns(a, NODES[0], -1, 0),
            lambda: nodewise.gather(a, -1),
            lambda: nodewise.scatter(a, [10**6]),
            lambda: nodewise.scatter(a, []),
        ):
            with self.assertRaises(ValueError):
                wrong()

    def test_everything_public_has_types_and_words(self):
        for name in nodewise.__all__:
            thing = getattr(nodewise, name)
            if name in ("ShapeLike", "PolicyLike"):
                continue
            self.assertTrue(thing.__doc__, name)
            if inspect.isfunction(thing):
                hints = typing.get_type_hints(thing)
                self.assertEqual(set(hints), {*inspect.signature(thing).parameters, "return"}, name)


class Places(unittest.TestCase):
    """On several nodes pages lie where descriptions say, whoever made the array."""

    def setUp(self):
        if len(NODES) == 1 or os.environ.get("NODEWISE_PRETEND"):
            self.skipTest("one node, or a pretended machine")

    def test_policies(self):
        for policy in ("cyclic", "cyclic rows 4", "skew columns 256", "random", "blocks rows", "block-exclusive",
                       f"node {NODES[-1]}", "bind rows", "prime 7"):  # fmt: skip
            for a in (nodewise.zeros((256, 1024)), np.ones((256, 1024)), nodewise.zeros((256, 1024), order="F")):
                expected = nodewise.describe(a, policy).page_nodes()
                self.assertTrue(nodewise.place(a, policy), policy)
                a[...] = 3
                inner = slice(1, -1) if address(a) % PAGE else slice(None)
                self.assertEqual(nodewise.page_nodes(a)[inner].tolist(), expected[inner].tolist(), policy)

    def test_migration_and_statistics(self):
        a = nodewise.zeros((64, 1024), policy=nodewise.node(NODES[0]))
        a[...] = 1
        before = nodewise.statistics()
        self.assertTrue(nodewise.migrate_rows(a, NODES[1], 10, 5))
        self.assertEqual(np.flatnonzero(nodewise.page_nodes(a) == NODES[1]).tolist(), list(range(10, 30)))
        self.assertTrue(nodewise.gather(a, NODES[1]))
        self.assertEqual(nodewise.histogram(a).pages[NODES[1]], 128)
        self.assertEqual(nodewise.statistics().pages_moved - before.pages_moved, 128)
        self.assertTrue(nodewise.scatter(a))
        self.assertEqual(len(set(nodewise.page_nodes(a).tolist())), len(NODES))

    def test_nearest_copy_is_on_the_caller_s_node(self):
        a = nodewise.zeros(10000)
        a[...] = np.arange(10000)
        self.assertTrue(nodewise.replicate(a))
        nodewise.set_threads(len(NODES))
        for t in range(len(NODES)):
            nodewise.bind_thread(t)
            copy = nodewise.nearest(a)
            self.assertEqual(set(nodewise.page_nodes(copy).tolist()), {nodewise.thread_node(t)})
            self.assertTrue(np.array_equal(copy, a))

    def test_copies_lie_on_the_nodes_that_were_chosen(self):
        a = nodewise.zeros(10000)
        with tempfile.NamedTemporaryFile() as file:
            file.write(bytes(a))
            file.flush()
            for each in (a, nodewise.map_file(file, float)):
                self.assertTrue(nodewise.replicate(each, NODES[-1:]))
                report = nodewise.copies(each)
                pages = -(-a.nbytes // PAGE)
                self.assertEqual(report.pages, {node: pages * (node == NODES[-1]) for node in NODES})
                self.assertEqual((report.count, report.elsewhere, report.kept_bytes), (1, 0, 0))
                self.assertEqual(set(nodewise.page_nodes(nodewise.nearest(each)).tolist()), {NODES[-1]})
                with self.assertRaisesRegex(ValueError, "already"):
                    nodewise.replicate(each, NODES)

    def test_copies_stay_when_other_shapes_ask(self):
        a = np.ones((512, 1024))
        self.assertTrue(nodewise.replicate(a))
        near = address(nodewise.nearest(a))
        self.assertNotEqual(near, address(a))
        self.assertEqual(nodewise.histogram(a.reshape(-1)), nodewise.histogram(a))
        self.assertEqual(address(nodewise.nearest(a.reshape(-1))), near)
        with self.assertRaisesRegex(ValueError, "has copies"):
            nodewise.place(a.reshape(-1), "cyclic")

    def test_full_nodes_are_seen_after_touching(self):
        line = pathlib.Path(f"/sys/devices/system/node/node{NODES[0]}/meminfo").read_text().splitlines()[0]
        pages = int(line.split()[-2]) * 1024 // PAGE
        a = nodewise.zeros((pages, PAGE // 8), policy=nodewise.node(NODES[0]))
        a[...] = 1
        self.assertGreater(nodewise.histogram(a).pages[NODES[1]], 0)
        self.assertEqual(nodewise.place(a, nodewise.node(NODES[0])).status, nodewise.Status.PARTLY)


def main():
    cases = (Places,) if sys.argv[1:] else (Arrays, Foreign, Policies, Descriptions, Machine, Places)
    suite = unittest.TestSuite(map(unittest.defaultTestLoader.loadTestsFromTestCase, cases))
    done = unittest.TextTestRunner(stream=sys.stdout).run(suite)
    bad = len(done.failures) + len(done.errors)
    print(f"{done.testsRun - bad - len(done.skipped)} passed, {bad} failed", flush=True)
    sys.exit(bad != 0)


if __name__ == "__main__":
    main()
